/** Changes that are not made yet: how many, the SQL that they are, and the one button that makes them. */
import { useState } from 'react';
import { runScript } from '../api/sql.ts';
import { useConfirm } from '../forms/use-form.ts';
import type { Target } from '../target/target.tsx';
import { Button } from '../ui/button.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { count } from '../ui/format.ts';
import { notify } from '../ui/notices.ts';

interface ChangesBarProps {
  readonly target: Target;
  readonly statements: readonly string[];
  readonly onApplied: () => void;
  readonly onDiscard: () => void;
}

export function ChangesBar({ target, statements, onApplied, onDiscard }: ChangesBarProps) {
  const [isShown, setShown] = useState(false);
  if (statements.length === 0) return null;
  return (
    <div className="changes-bar" role="status">
      <strong>{count(statements.length, 'change')}</strong> not applied yet
      <Button small tone="primary" onClick={() => setShown(true)}>
        Review and apply
      </Button>
      <Button small onClick={onDiscard}>
        Discard
      </Button>
      {isShown && (
        <ApplyDialog
          target={target}
          statements={statements}
          onApplied={() => {
            setShown(false);
            onApplied();
          }}
          onClose={() => setShown(false)}
        />
      )}
    </div>
  );
}

interface ApplyDialogProps {
  readonly target: Target;
  readonly statements: readonly string[];
  readonly onApplied: () => void;
  readonly onClose: () => void;
}

function ApplyDialog({ target, statements, onApplied, onClose }: ApplyDialogProps) {
  const { branch, uri } = target;
  const form = useConfirm({
    // A batch is one transaction.
    send: () => runScript(uri, statements),
    refresh: [],
    onDone: (results) => {
      const missed = results.filter(({ rowCount }) => rowCount === 0).length;
      if (missed > 0) notify('bad', `${count(missed, 'row')} had been deleted meanwhile, and stayed so.`);
      else notify('good', `${count(statements.length, 'change')} applied.`);
      onApplied();
    },
  });
  const what = count(statements.length, 'change');
  return (
    <FormDialog
      title={branch.protected ? `Write to the protected branch ${branch.name}?` : `Apply ${what}`}
      submit={branch.protected ? 'Write to the protected branch' : `Apply ${what}`}
      tone={branch.protected ? 'danger' : 'primary'}
      form={form}
      onClose={onClose}
      wide
    >
      <p>In one transaction: all of it, or nothing.</p>
      <pre className="code-block">{statements.map((statement) => `${statement};`).join('\n')}</pre>
    </FormDialog>
  );
}
