/** The queries that the project keeps: search, open, delete. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { SavedQuery } from '../api/generated.ts';
import { Ago } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { TextField } from '../ui/field.tsx';
import { notify } from '../ui/notices.ts';
import { Empty, Loaded } from '../ui/states.tsx';
import { listSavedQueries } from './use-query-tabs.ts';

interface SavedDialogProps {
  readonly projectId: string;
  readonly onOpen: (query: SavedQuery) => void;
  readonly onRemove: (id: string) => Promise<void>;
  readonly onClose: () => void;
}

export function SavedDialog({ projectId, onOpen, onRemove, onClose }: SavedDialogProps) {
  const [words, setWords] = useState('');
  const saved = useQuery({
    queryKey: ['saved-queries', projectId, 'all'],
    queryFn: () => listSavedQueries(projectId),
    gcTime: 0,
  });
  const remove = async (query: SavedQuery) => {
    try {
      await onRemove(query.id);
      await saved.refetch();
    } catch (error) {
      notify('bad', error instanceof Error ? error.message : String(error));
    }
  };
  const wanted = words.toLowerCase().split(/\s+/);
  const isWanted = ({ name, query }: SavedQuery) =>
    wanted.every((word) => `${name} ${query}`.toLowerCase().includes(word));
  return (
    <Dialog title="Saved queries" onClose={onClose} wide>
      <div className="dialog-body">
        <TextField label="Search" type="search" value={words} onChange={setWords} />
        <Loaded query={saved}>
          {(all) => {
            const found = all.filter(isWanted);
            if (found.length === 0)
              return <Empty title={all.length === 0 ? 'Nothing is saved yet.' : 'No query matches.'} />;
            return (
              <ul className="history">
                {found.map((query) => (
                  <li key={query.id}>
                    <button type="button" aria-label={`Open ${query.name}`} onClick={() => onOpen(query)}>
                      <strong>{query.name}</strong> <code>{query.query}</code>
                    </button>
                    <span className="hint">
                      <Ago at={query.updated_at} />
                    </span>
                    <Button small tone="quiet" aria-label={`Delete ${query.name}`} onClick={() => remove(query)}>
                      Delete
                    </Button>
                  </li>
                ))}
              </ul>
            );
          }}
        </Loaded>
        <p className="hint">Kept with the project, as they are written. Closing a tab keeps its query.</p>
      </div>
    </Dialog>
  );
}
