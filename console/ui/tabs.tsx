/** Tabs over one panel. The arrow keys walk between them, as everywhere. */
import { type KeyboardEvent, type ReactNode, useId } from 'react';

export interface Tab {
  readonly id: string;
  readonly text: ReactNode;
  /** Something went wrong behind it. */
  readonly isBad?: boolean;
}

interface TabsProps {
  readonly label: string;
  readonly tabs: readonly Tab[];
  readonly chosen: string;
  readonly onChoose: (id: string) => void;
  /** Beside the tabs. */
  readonly tools?: ReactNode;
  readonly children: ReactNode;
}

export function Tabs({ label, tabs, chosen, onChoose, tools, children }: TabsProps) {
  const id = useId();
  const walk = (event: KeyboardEvent<HTMLDivElement>) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step === undefined) return;
    const now = tabs.findIndex((tab) => tab.id === chosen);
    const next = tabs[(now + step + tabs.length) % tabs.length];
    if (next === undefined) return;
    event.preventDefault();
    onChoose(next.id);
    document.getElementById(`${id}-${next.id}`)?.focus();
  };
  return (
    <div className="tabs">
      <div className="tabs-head">
        <div className="tab-list" role="tablist" aria-label={label} onKeyDown={walk}>
          {tabs.map((tab) => (
            <button
              key={tab.id}
              id={`${id}-${tab.id}`}
              type="button"
              role="tab"
              className={tab.isBad === true ? 'tab bad' : 'tab'}
              aria-selected={tab.id === chosen}
              aria-controls={`${id}-panel`}
              tabIndex={tab.id === chosen ? 0 : -1}
              onClick={() => onChoose(tab.id)}
            >
              {tab.text}
            </button>
          ))}
        </div>
        {tools !== undefined && <div className="tabs-tools">{tools}</div>}
      </div>
      <div className="tab-panel" id={`${id}-panel`} role="tabpanel" aria-labelledby={`${id}-${chosen}`}>
        {children}
      </div>
    </div>
  );
}
