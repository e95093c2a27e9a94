/** Buttons. A busy one stays where it is, disabled. */
import type { ButtonHTMLAttributes, ReactNode } from 'react';

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly tone?: 'plain' | 'primary' | 'danger' | 'quiet';
  readonly small?: boolean;
  readonly busy?: boolean;
  readonly children: ReactNode;
}

export function Button({ tone = 'plain', small = false, busy = false, children, ...rest }: ButtonProps) {
  const className = `button ${tone}${small ? ' small' : ''}${busy ? ' busy' : ''}`;
  return (
    <button type="button" {...rest} className={className} disabled={rest.disabled === true || busy} aria-busy={busy}>
      {children}
    </button>
  );
}
