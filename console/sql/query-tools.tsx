/** Beside the tabs of the queries: a new one, a new name, what is saved, and whether this one is. */
import { useState } from 'react';
import { Button } from '../ui/button.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { TextField } from '../ui/field.tsx';
import { Icon } from '../ui/icons.tsx';
import { MenuButton } from '../ui/menu.tsx';
import type { SaveState } from './query-tabs.ts';

interface QueryToolsProps {
  readonly save: SaveState;
  readonly onAdd: () => void;
  readonly onRename: () => void;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}

export function QueryTools({ save, onAdd, onRename, onClose, onSaved }: QueryToolsProps) {
  return (
    <>
      <span className={save.kind === 'failed' ? 'save-state bad' : 'save-state'} role="status">
        {save.kind === 'failed' ? `Not saved: ${save.reason}` : save.kind === 'waiting' ? 'Saving' : ''}
      </span>
      <Button small tone="quiet" aria-label="New query" onClick={onAdd}>
        <Icon name="plus" />
      </Button>
      <Button small tone="quiet" onClick={onSaved}>
        Saved queries
      </Button>
      <MenuButton
        small
        tone="quiet"
        menu="Query"
        aria-label="Query menu"
        items={[
          { label: 'Rename', onSelect: onRename },
          { label: 'Close tab', onSelect: onClose },
        ]}
      >
        <Icon name="more" />
      </MenuButton>
    </>
  );
}

interface RenameDialogProps {
  readonly name: string;
  readonly onRename: (name: string) => void;
  readonly onClose: () => void;
}

export function RenameDialog({ name, onRename, onClose }: RenameDialogProps) {
  const [text, setText] = useState(name);
  const submit = () => {
    onRename(text.trim());
    onClose();
  };
  return (
    <FormDialog
      title="Rename the query"
      submit="Rename"
      form={{ isBusy: false, error: null, submit }}
      disabled={text.trim() === ''}
      onClose={onClose}
    >
      <TextField label="Name" value={text} maxLength={100} onChange={setText} />
    </FormDialog>
  );
}
