/** What was run before, with a search. */
import { useState } from 'react';
import { Ago } from '../ui/bits.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { TextField } from '../ui/field.tsx';
import { Empty } from '../ui/states.tsx';
import type { HistoryEntry } from './history.ts';

interface HistoryDialogProps {
  readonly entries: readonly HistoryEntry[];
  readonly onChoose: (query: string) => void;
  readonly onClose: () => void;
}

export function HistoryDialog({ entries, onChoose, onClose }: HistoryDialogProps) {
  const [words, setWords] = useState('');
  const wanted = words.toLowerCase().split(/\s+/);
  const found = entries.filter(({ query }) => wanted.every((word) => query.toLowerCase().includes(word)));
  return (
    <Dialog title="History" onClose={onClose} wide>
      <div className="dialog-body">
        <TextField label="Search" type="search" value={words} onChange={setWords} />
        {found.length === 0 ? (
          <Empty title={entries.length === 0 ? 'Nothing was run here yet.' : 'Nothing that was run has these words.'} />
        ) : (
          <ul className="history">
            {found.map((entry) => (
              <li key={entry.query}>
                <button type="button" onClick={() => onChoose(entry.query)}>
                  <code>{entry.query}</code>
                </button>
                <span className="hint">
                  <Ago at={entry.at} />
                </span>
              </li>
            ))}
          </ul>
        )}
        <p className="hint">Kept in this browser.</p>
      </div>
    </Dialog>
  );
}
