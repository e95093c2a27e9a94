/** One compute: what it is, its state and the change under way, its size, when it was used, and what can be done. */
import { useState } from 'react';
import { api, at } from '../api/client.ts';
import type { Branch, Endpoint, Operation } from '../api/generated.ts';
import { useAction } from '../forms/action.ts';
import { Ago, CopyableId, useNow } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { bytes, duration } from '../ui/format.ts';
import { neverDelay, rangeText, usualDelaySeconds } from '../ui/sizes.ts';
import { type ComputeDialogName, ComputeDialogs } from './compute-dialogs.tsx';
import { explainAction, isOpen } from './operation-words.ts';

interface ComputeRowProps {
  readonly endpoint: Endpoint;
  readonly branches: readonly Branch[];
  readonly endpoints: readonly Endpoint[];
  readonly operations: readonly Operation[];
}

export function ComputeRow({ endpoint, branches, endpoints, operations }: ComputeRowProps) {
  const [dialog, setDialog] = useState<ComputeDialogName | null>(null);
  const pending = operations.filter((operation) => operation.endpoint_id === endpoint.id && isOpen(operation));
  const kind = endpoint.type === 'read_write' ? 'Primary read-write' : 'Read Replica';
  return (
    <div className="compute">
      <State endpoint={endpoint} pending={pending.at(-1)} />
      <div className="compute-facts">
        <div className="compute-name">
          <strong>{endpoint.name ?? kind}</strong>
          {endpoint.name !== undefined && <span className="hint">{kind}</span>}
          <CopyableId id={endpoint.id} label="the endpoint id" />
        </div>
        <div className="meta">
          <span>
            {rangeText(endpoint.autoscaling_limit_min_cu, endpoint.autoscaling_limit_max_cu)}
            {endpoint.current_cu !== undefined && isRange(endpoint) && `, now ${endpoint.current_cu} vCPU`}
          </span>
          <LastActive endpoint={endpoint} />
          <NextSuspend endpoint={endpoint} />
          {!endpoint.limits_enforced && <span title="Control groups are not permitted here">size not enforced</span>}
          {endpoint.replication_lag_bytes !== undefined && (
            <span>
              {endpoint.replication_lag_bytes === 0 ? 'up to date' : `${bytes(endpoint.replication_lag_bytes)} behind`}
            </span>
          )}
        </div>
        <WritesOff endpoint={endpoint} />
        <WhyAwake endpoint={endpoint} />
        {pending.length === 0 && <WaitingUpdate endpoint={endpoint} />}
      </div>
      <Actions endpoint={endpoint} isPending={pending.length > 0} onDialog={setDialog} />
      {dialog !== null && (
        <ComputeDialogs
          name={dialog}
          endpoint={endpoint}
          branches={branches}
          endpoints={endpoints}
          onClose={() => setDialog(null)}
        />
      )}
    </div>
  );
}

const isRange = (endpoint: Endpoint) => endpoint.autoscaling_limit_min_cu !== endpoint.autoscaling_limit_max_cu;

const stateNames = { init: 'New', active: 'Active', idle: 'Idle' } as const;
const pendingNames = { init: 'Preparing', active: 'Starting', idle: 'Suspending' } as const;

function State({ endpoint, pending }: { readonly endpoint: Endpoint; readonly pending: Operation | undefined }) {
  const { current_state: state, pending_state: next } = endpoint;
  // A change that ends in the same state is explained by its operation.
  const change = next === undefined || next === state ? undefined : pendingNames[next];
  const isChanging = next !== undefined || pending !== undefined;
  return (
    <div>
      <span className="state">
        <span className={`dot ${isChanging ? 'pending' : state}`} />
        {endpoint.disabled ? 'Disabled' : stateNames[state]}
      </span>
      {isChanging && (
        <p className="hint" role="status">
          {change ?? (pending === undefined ? '' : explainAction(pending.action))} …
        </p>
      )}
    </div>
  );
}

function LastActive({ endpoint }: { readonly endpoint: Endpoint }) {
  if (endpoint.last_active === undefined) return <span>not used yet</span>;
  return (
    <span>
      active <Ago at={endpoint.last_active} />
    </span>
  );
}

/** `why_awake` is absent while the compute is suspended and just after it has started. */
function NextSuspend({ endpoint }: { readonly endpoint: Endpoint }) {
  const now = useNow();
  const delay = endpoint.suspend_timeout_seconds;
  if (delay === neverDelay) return <span>always on</span>;
  const why = endpoint.why_awake;
  if (why === undefined) return <span>suspends after {duration(delay === 0 ? usualDelaySeconds : delay)}</span>;
  const left = why.sleeps_at === undefined ? undefined : (Date.parse(why.sleeps_at) - now) / 1000;
  return (
    <span title={why.description}>
      {left === undefined ? 'busy' : left > 0 ? `suspends in ${duration(left)}` : 'about to suspend'}
    </span>
  );
}

/** Shown only where the reason is more than recent use. */
function WhyAwake({ endpoint }: { readonly endpoint: Endpoint }) {
  const why = endpoint.why_awake;
  if (why === undefined || why.reason === 'recent_activity' || why.reason === 'never_suspends') return null;
  return <p className="hint">Awake: {why.description}</p>;
}

function WritesOff({ endpoint }: { readonly endpoint: Endpoint }) {
  if (endpoint.writes_off === undefined) return null;
  return <p className="hint">Writes are off: {endpoint.writes_off.description}.</p>;
}

/** A compute that suspends gets the update at its next start; one that is always on needs a restart. */
function WaitingUpdate({ endpoint }: { readonly endpoint: Endpoint }) {
  const update = endpoint.pending_update;
  if (update === undefined) return null;
  const { compute_release_version: release, autoscaling_limit_max_cu: maxCu } = update;
  const news = [
    ...(release === undefined ? [] : [`Postgres ${release}`]),
    ...(maxCu === undefined ? [] : [`the plan’s limit of ${maxCu} CU`]),
  ];
  return <p className="hint">An update waits for the next start: {news.join(' and ')}. Restart to have it now.</p>;
}

interface ActionsProps {
  readonly endpoint: Endpoint;
  readonly isPending: boolean;
  readonly onDialog: (name: ComputeDialogName) => void;
}

function Actions({ endpoint, isPending, onDialog }: ActionsProps) {
  const { project_id: projectId, id } = endpoint;
  const run = useAction(
    (verb: 'start' | 'suspend' | 'restart') =>
      api<object>('POST', `${at`/projects/${projectId}/endpoints/${id}`}/${verb}`),
    { refresh: [['project', projectId]] },
  );
  const isBusy = run.isPending;
  const isActive = endpoint.current_state === 'active';
  return (
    <fieldset className="compute-actions plain" aria-label={`Actions of ${id}`}>
      {isActive ? (
        <>
          <Button small busy={isBusy} disabled={isPending} onClick={() => run.mutate('suspend')}>
            Suspend
          </Button>
          <Button small disabled={isBusy || isPending} onClick={() => onDialog('restart')}>
            Restart
          </Button>
        </>
      ) : (
        <Button small busy={isBusy} disabled={isPending || endpoint.disabled} onClick={() => run.mutate('start')}>
          Start
        </Button>
      )}
      <Button small onClick={() => onDialog('edit')}>
        Edit
      </Button>
      <Button small onClick={() => onDialog('move')}>
        Move
      </Button>
      <Button small onClick={() => onDialog('delete')}>
        Delete
      </Button>
    </fieldset>
  );
}
