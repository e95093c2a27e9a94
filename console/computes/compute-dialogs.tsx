/** What is done to a compute with a question first: edit, move, restart, delete. */

import { api, at } from '../api/client.ts';
import type { Branch, Endpoint } from '../api/generated.ts';
import { useConfirm, useForm } from '../forms/use-form.ts';
import { ConfirmDialog, FormDialog } from '../ui/dialog.tsx';
import { CheckField, SelectField, TextField } from '../ui/field.tsx';
import { type Sizing, SizingFields, sizingBody, sizingOf } from './sizing-fields.tsx';

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

function useUpdate<Values extends object>(
  { endpoint, onClose }: ComputeDialogProps,
  initial: Values,
  changeOf: (values: Values) => object,
) {
  return useForm({
    initial,
    send: (values) => api<object>('PATCH', pathOf(endpoint), { body: { endpoint: changeOf(values) } }),
    refresh: [['project', endpoint.project_id]],
    onDone: onClose,
  });
}

interface EditValues {
  readonly name: string;
  readonly sizing: Sizing;
  readonly isDisabled: boolean;
  readonly isPoolerOpen: boolean;
}

/** Only what differs: a size that is sent restarts the compute. */
function changeOf(endpoint: Endpoint, { name, sizing, isDisabled, isPoolerOpen }: EditValues): object {
  const { suspend_timeout_seconds, ...size } = sizingBody(sizing);
  return {
    ...(isResize(endpoint, sizing) ? size : {}),
    ...(suspend_timeout_seconds === endpoint.suspend_timeout_seconds ? {} : { suspend_timeout_seconds }),
    ...(name.trim() !== '' && name.trim() !== endpoint.name ? { name: name.trim() } : {}),
    ...(isDisabled === endpoint.disabled ? {} : { disabled: isDisabled }),
    ...(isPoolerOpen === endpoint.pooler_enabled ? {} : { pooler_enabled: isPoolerOpen }),
  };
}

function isResize(endpoint: Endpoint, sizing: Sizing): boolean {
  const { autoscaling_limit_min_cu: min, autoscaling_limit_max_cu: max } = sizingBody(sizing);
  return min !== endpoint.autoscaling_limit_min_cu || max !== endpoint.autoscaling_limit_max_cu;
}

function EditCompute(props: ComputeDialogProps) {
  const { endpoint, onClose } = props;
  const initial = {
    name: endpoint.name ?? '',
    sizing: sizingOf(endpoint),
    isDisabled: endpoint.disabled,
    isPoolerOpen: endpoint.pooler_enabled,
  };
  const form = useUpdate(props, initial, (values) => changeOf(endpoint, values));
  return (
    <FormDialog title="Edit compute" submit="Save" form={form} onClose={onClose}>
      <TextField label="Name" {...form.field('name')} maxLength={64} placeholder={endpoint.id} />
      <SizingFields sizing={form.values.sizing} onChange={(sizing) => form.set({ sizing })} />
      <CheckField
        label="Pooled host"
        hint={`Clients may connect to ${endpoint.id}-pooler and share sessions.`}
        {...form.check('isPoolerOpen')}
      />
      <CheckField
        label="Disabled"
        hint="A disabled compute is suspended and refuses connections."
        {...form.check('isDisabled')}
      />
      {isResize(endpoint, form.values.sizing) && endpoint.current_state === 'active' && (
        <p className="hint" role="status">
          Saving restarts the compute at once; its connections are dropped for a moment.
        </p>
      )}
    </FormDialog>
  );
}

/** A primary moves to a branch that has none, a read replica to one that has. */
function MoveCompute(props: ComputeDialogProps) {
  const { endpoint, branches, endpoints, onClose } = props;
  const isReplica = endpoint.type === 'read_only';
  const served = new Set(endpoints.filter(({ type }) => type === 'read_write').map(({ branch_id }) => branch_id));
  const targets = branches.filter(({ id }) => id !== endpoint.branch_id && served.has(id) === isReplica);
  const form = useUpdate(props, { target: targets[0]?.id ?? '' }, ({ target }) => ({ branch_id: target }));
  return (
    <FormDialog title="Move compute" submit="Move" form={form} disabled={form.values.target === ''} onClose={onClose}>
      {targets.length === 0 ? (
        <p>
          {isReplica
            ? 'No other branch has a primary compute that this replica could follow.'
            : 'Every branch has a primary compute already, so there is nowhere to move this one.'}
        </p>
      ) : (
        <>
          <p>
            The host name stays; the next connection serves the other branch. Connections are dropped.
            {isReplica && ' Its data is copied again from the other primary.'}
          </p>
          <SelectField
            label="To branch"
            {...form.field('target')}
            choices={targets.map(({ id, name }) => ({ value: id, text: name }))}
          />
        </>
      )}
    </FormDialog>
  );
}

function RestartCompute({ endpoint, onClose }: ComputeDialogProps) {
  const restart = useConfirm({
    send: () => api<object>('POST', `${pathOf(endpoint)}/restart`),
    refresh: [['project', endpoint.project_id]],
    onDone: onClose,
  });
  return (
    <ConfirmDialog title="Restart compute" submit="Restart" form={restart} onClose={onClose}>
      <p>Connections to {endpoint.id} are dropped, and queries that run are interrupted.</p>
    </ConfirmDialog>
  );
}

function DeleteCompute({ endpoint, onClose }: ComputeDialogProps) {
  const remove = useConfirm({
    send: () => api<object>('DELETE', pathOf(endpoint)),
    refresh: [['project', endpoint.project_id]],
    done: `Compute ${endpoint.id} is deleted.`,
    onDone: onClose,
  });
  return (
    <ConfirmDialog title="Delete compute" submit="Delete compute" form={remove} onClose={onClose}>
      <p>
        The data stays with its branch. The host name {endpoint.id} is gone for good: a compute that is added later has
        another one.
      </p>
    </ConfirmDialog>
  );
}
