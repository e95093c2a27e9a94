/** Two panes, one above the other, and a bar between them that can be moved. Where it was stays in the browser. */
import { type KeyboardEvent, type PointerEvent, type ReactNode, useRef, useState } from 'react';

interface SplitPaneProps {
  /** What is kept under this name. */
  readonly name: string;
  readonly label: string;
  readonly top: ReactNode;
  readonly bottom: ReactNode;
}

const least = 15;
const most = 80;
const usual = 38;
const clamp = (share: number) => Math.round(Math.max(least, Math.min(most, share)));

export function SplitPane({ name, label, top, bottom }: SplitPaneProps) {
  const key = `catnap-split-${name}`;
  const pane = useRef<HTMLDivElement>(null);
  const [share, setShare] = useState(() => clamp(Number(localStorage.getItem(key) ?? usual) || usual));
  const change = (next: number) => {
    setShare(clamp(next));
    localStorage.setItem(key, String(clamp(next)));
  };
  const drag = (down: PointerEvent<HTMLDivElement>) => {
    const bar = down.currentTarget;
    const move = (event: globalThis.PointerEvent) => {
      const place = pane.current?.getBoundingClientRect();
      if (place !== undefined) change(((event.clientY - place.top) / place.height) * 100);
    };
    bar.setPointerCapture(down.pointerId);
    bar.addEventListener('pointermove', move);
    bar.addEventListener('lostpointercapture', () => bar.removeEventListener('pointermove', move), { once: true });
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowUp: -4, ArrowDown: 4, Home: least - most, End: most - least }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    change(share + step);
  };
  return (
    <div className="split" ref={pane} style={{ gridTemplateRows: `${share}% 7px minmax(0, 1fr)` }}>
      <div className="split-pane">{top}</div>
      {/* biome-ignore lint/a11y/useSemanticElements: a rule cannot be moved. */}
      <div
        className="split-bar"
        role="separator"
        aria-label={label}
        aria-orientation="horizontal"
        aria-valuemin={least}
        aria-valuemax={most}
        aria-valuenow={share}
        tabIndex={0}
        onPointerDown={drag}
        onKeyDown={press}
        onDoubleClick={() => change(usual)}
      />
      <div className="split-pane">{bottom}</div>
    </div>
  );
}
