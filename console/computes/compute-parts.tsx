/** What every place that shows a compute has: its state, one button, and the items of its menu. */
import { api, at } from '../api/client.ts';
import type { Endpoint, Operation } from '../api/generated.ts';
import { useAction } from '../forms/action.ts';
import { doingText } from '../operations/words.ts';
import { Button } from '../ui/button.tsx';
import type { MenuItem } from '../ui/menu.tsx';
import type { ComputeDialogName } from './compute-dialogs.tsx';

const stateNames = { init: 'New', active: 'Active', idle: 'Idle' } as const;
const pendingNames = { init: 'Preparing', active: 'Starting', idle: 'Suspending' } as const;

interface ComputeStateProps {
  readonly endpoint: Endpoint;
  /** The operation under way. */
  readonly pending: Operation | undefined;
}

export function ComputeState({ endpoint, pending }: ComputeStateProps) {
  const { current_state: state, pending_state: next } = endpoint;
  // A change that ends in the same state is explained by its operation.
  const change = next === undefined || next === state ? undefined : pendingNames[next];
  const isChanging = next !== undefined || pending !== undefined;
  return (
    <span className="state">
      <span className={`dot ${isChanging ? 'pending' : state}`} />
      <span>{endpoint.disabled ? 'Disabled' : stateNames[state]}</span>
      {isChanging && (
        <span className="hint" role="status">
          {change ?? (pending === undefined ? 'Changing' : doingText(pending.action))} …
        </span>
      )}
    </span>
  );
}

interface StartOrSuspendProps {
  readonly endpoint: Endpoint;
  readonly isPending: boolean;
}

export function StartOrSuspend({ endpoint, isPending }: StartOrSuspendProps) {
  const { project_id: projectId, id, current_state: state } = endpoint;
  const run = useAction(
    (verb: 'start' | 'suspend') => api<object>('POST', `${at`/projects/${projectId}/endpoints/${id}`}/${verb}`),
    { refresh: [['project', projectId]] },
  );
  const verb = state === 'active' ? 'suspend' : 'start';
  return (
    <Button
      small
      busy={run.isPending}
      disabled={isPending || (verb === 'start' && endpoint.disabled)}
      onClick={() => run.mutate(verb)}
    >
      {verb === 'start' ? 'Start' : 'Suspend'}
    </Button>
  );
}

/** Deletion is the last one, and apart from the others. */
export function computeItems(
  endpoint: Endpoint,
  isPending: boolean,
  onDialog: (name: ComputeDialogName) => void,
): readonly MenuItem[] {
  return [
    {
      label: 'Restart compute',
      isDisabled: isPending || endpoint.current_state !== 'active',
      onSelect: () => onDialog('restart'),
    },
    { label: 'Edit compute', onSelect: () => onDialog('edit') },
    { label: 'Move compute', onSelect: () => onDialog('move') },
    { label: 'Delete compute', isApart: true, isBad: true, onSelect: () => onDialog('delete') },
  ];
}
