/** Small things that many pages use: badges, times, ids to copy, headings with buttons. */
import { type ReactNode, useEffect, useState } from 'react';
import { Button } from './button.tsx';
import { copyText } from './clipboard.ts';
import { fullTime, relative } from './format.ts';
import { Icon } from './icons.tsx';
import type { Tone } from './tone.ts';

export function Badge({ tone = 'plain', children }: { readonly tone?: Tone; readonly children: ReactNode }) {
  return <span className={`badge ${tone}`}>{children}</span>;
}

const tickMs = 5_000;

export function useNow(everyMs = tickMs): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

export function Ago({ at }: { readonly at: string }) {
  const now = useNow();
  return (
    <time dateTime={at} title={fullTime(at)}>
      {relative(at, now)}
    </time>
  );
}

const copiedMs = 1_500;

interface CopyButtonProps {
  readonly text: string;
  readonly label: string;
  /** Words on the button; otherwise a picture. */
  readonly children?: ReactNode;
}

export function CopyButton({ text, label, children }: CopyButtonProps) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    if (!(await copyText(text))) return;
    setCopied(true);
    setTimeout(() => setCopied(false), copiedMs);
  };
  return (
    <Button
      tone={children === undefined ? 'quiet' : 'plain'}
      small
      aria-label={isCopied ? 'Copied' : label}
      onClick={copy}
    >
      <Icon name={isCopied ? 'check' : 'copy'} />
      {children !== undefined && <span>{isCopied ? 'Copied' : children}</span>}
    </Button>
  );
}

export function CopyableId({ id, label }: { readonly id: string; readonly label: string }) {
  return (
    <span className="copyable">
      <code>{id}</code>
      <CopyButton text={id} label={`Copy ${label}`} />
    </span>
  );
}

interface PageHeadProps {
  readonly title: ReactNode;
  readonly lead?: ReactNode;
  readonly children?: ReactNode;
}

export function PageHead({ title, lead, children }: PageHeadProps) {
  return (
    <header className="page-head">
      <div>
        <h1>{title}</h1>
        {lead !== undefined && <p className="lead">{lead}</p>}
      </div>
      {children !== undefined && <div className="page-actions">{children}</div>}
    </header>
  );
}

interface CardProps {
  readonly title?: string;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

export function Card({ title, actions, children }: CardProps) {
  return (
    <section className="card">
      {title !== undefined && (
        <header className="card-head">
          <h2>{title}</h2>
          {actions !== undefined && <div className="row">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

/** Shown once: a secret that cannot be asked for again, or only with a click. */
export function Secret({ text, label }: { readonly text: string; readonly label: string }) {
  return (
    <div className="secret">
      <code>{text}</code>
      <CopyButton text={text} label={`Copy ${label}`}>
        Copy
      </CopyButton>
    </div>
  );
}
