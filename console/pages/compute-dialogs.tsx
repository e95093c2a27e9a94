/** What is done to a compute with a question first: edit, move, restart, delete. */
import { useState } from 'react';
import { useAction } from '../api/action.ts';
import { api, at } from '../api/client.ts';
import type { Branch, Endpoint } from '../api/types.ts';
import { ConfirmDialog, FormDialog } from '../ui/dialog.tsx';
import { CheckField, SelectField, TextField } from '../ui/field.tsx';
import { SizingFields, sizingBody, sizingOf } from './sizing-fields.tsx';

export type ComputeDialogName = 'edit' | 'move' | 'restart' | 'delete';

interface ComputeDialogProps {
  readonly endpoint: Endpoint;
  readonly branches: readonly Branch[];
  readonly endpoints: readonly Endpoint[];
  readonly onClose: () => void;
}

export function ComputeDialogs({ name, ...props }: ComputeDialogProps & { readonly name: ComputeDialogName }) {
  switch (name) {
    case 'edit':
      return <EditCompute {...props} />;
    case 'move':
      return <MoveCompute {...props} />;
    case 'restart':
      return <RestartCompute {...props} />;
    case 'delete':
      return <DeleteCompute {...props} />;
  }
}

const pathOf = ({ project_id, id }: Endpoint) => at`/projects/${project_id}/endpoints/${id}`;

function useUpdate(endpoint: Endpoint, onDone: () => void) {
  return useAction((change: object) => api<object>('PATCH', pathOf(endpoint), { body: { endpoint: change } }), {
    refresh: [['project', endpoint.project_id]],
    showsFailure: true,
    onDone,
  });
}

function EditCompute({ endpoint, onClose }: ComputeDialogProps) {
  const [name, setName] = useState(endpoint.name ?? '');
  const [sizing, setSizing] = useState(() => sizingOf(endpoint));
  const [isDisabled, setDisabled] = useState(endpoint.disabled);
  const update = useUpdate(endpoint, onClose);
  const body = sizingBody(sizing);
  const resizes =
    body.autoscaling_limit_min_cu !== endpoint.autoscaling_limit_min_cu ||
    body.autoscaling_limit_max_cu !== endpoint.autoscaling_limit_max_cu;
  const submit = () =>
    update.mutate({
      ...(resizes
        ? {
            autoscaling_limit_min_cu: body.autoscaling_limit_min_cu,
            autoscaling_limit_max_cu: body.autoscaling_limit_max_cu,
          }
        : {}),
      ...(body.suspend_timeout_seconds === endpoint.suspend_timeout_seconds
        ? {}
        : { suspend_timeout_seconds: body.suspend_timeout_seconds }),
      ...(name.trim() !== '' && name.trim() !== endpoint.name ? { name: name.trim() } : {}),
      ...(isDisabled === endpoint.disabled ? {} : { disabled: isDisabled }),
    });
  return (
    <FormDialog
      title="Edit compute"
      submit="Save"
      busy={update.isPending}
      error={update.error}
      onSubmit={submit}
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} maxLength={64} placeholder={endpoint.id} />
      <SizingFields sizing={sizing} onChange={setSizing} />
      <CheckField
        label="Disabled"
        hint="A disabled compute sleeps and refuses connections."
        checked={isDisabled}
        onChange={setDisabled}
      />
      {resizes && endpoint.current_state === 'active' && (
        <p className="hint" role="status">
          Saving restarts the compute at once; its connections are dropped for a moment.
        </p>
      )}
    </FormDialog>
  );
}

function MoveCompute({ endpoint, branches, endpoints, onClose }: ComputeDialogProps) {
  const taken = new Set(endpoints.filter(({ type }) => type === 'read_write').map(({ branch_id }) => branch_id));
  const free = branches.filter(({ id }) => !taken.has(id));
  const [target, setTarget] = useState(free[0]?.id ?? '');
  const update = useUpdate(endpoint, onClose);
  return (
    <FormDialog
      title="Move compute"
      submit="Move"
      busy={update.isPending}
      disabled={target === ''}
      error={update.error}
      onSubmit={() => update.mutate({ branch_id: target })}
      onClose={onClose}
    >
      {free.length === 0 ? (
        <p>Every branch has a primary compute already, so there is nowhere to move this one.</p>
      ) : (
        <>
          <p>The host name stays; the next connection serves the other branch. Connections are dropped.</p>
          <SelectField
            label="To branch"
            value={target}
            choices={free.map(({ id, name }) => ({ value: id, text: name }))}
            onChange={setTarget}
          />
        </>
      )}
    </FormDialog>
  );
}

function RestartCompute({ endpoint, onClose }: ComputeDialogProps) {
  const restart = useAction(() => api<object>('POST', `${pathOf(endpoint)}/restart`), {
    refresh: [['project', endpoint.project_id]],
    showsFailure: true,
    onDone: onClose,
  });
  return (
    <ConfirmDialog
      title="Restart compute"
      submit="Restart"
      busy={restart.isPending}
      error={restart.error}
      onSubmit={() => restart.mutate()}
      onClose={onClose}
    >
      <p>Connections to {endpoint.id} are dropped, and queries that run are interrupted.</p>
    </ConfirmDialog>
  );
}

function DeleteCompute({ endpoint, onClose }: ComputeDialogProps) {
  const remove = useAction(() => api<object>('DELETE', pathOf(endpoint)), {
    refresh: [['project', endpoint.project_id]],
    done: `Compute ${endpoint.id} is deleted.`,
    showsFailure: true,
    onDone: onClose,
  });
  return (
    <ConfirmDialog
      title="Delete compute"
      submit="Delete compute"
      busy={remove.isPending}
      error={remove.error}
      onSubmit={() => remove.mutate()}
      onClose={onClose}
    >
      <p>
        The data stays with its branch. The host name {endpoint.id} is gone for good: a compute that is added later has
        another one.
      </p>
    </ConfirmDialog>
  );
}
