/** One compute: what it is, its state and the change under way, its size, when it was used, and what can be done. */
import { useState } from 'react';
import type { Branch, Endpoint, Operation } from '../api/generated.ts';
import { isOpen } from '../operations/words.ts';
import { Ago, CopyableId, useNow } from '../ui/bits.tsx';
import { bytes, duration } from '../ui/format.ts';
import { Icon } from '../ui/icons.tsx';
import { MenuButton } from '../ui/menu.tsx';
import { neverDelay, rangeText, usualDelaySeconds } from '../ui/sizes.ts';
import { type ComputeDialogName, ComputeDialogs } from './compute-dialogs.tsx';
import { ComputeState, computeItems, StartOrSuspend } from './compute-parts.tsx';

interface ComputeRowProps {
  readonly endpoint: Endpoint;
  readonly branches: readonly Branch[];
  readonly endpoints: readonly Endpoint[];
  readonly operations: readonly Operation[];
}

export function ComputeRow({ endpoint, branches, endpoints, operations }: ComputeRowProps) {
  const [dialog, setDialog] = useState<ComputeDialogName | null>(null);
  const pending = operations.filter((operation) => operation.endpoint_id === endpoint.id && isOpen(operation));
  const kind = endpoint.type === 'read_write' ? 'Primary' : 'Read replica';
  return (
    <div className="compute">
      <ComputeState endpoint={endpoint} pending={pending.at(-1)} />
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
      <div className="compute-actions">
        <StartOrSuspend endpoint={endpoint} isPending={pending.length > 0} />
        <MenuButton
          small
          tone="quiet"
          menu={`Compute ${endpoint.id}`}
          aria-label={`Actions of ${endpoint.id}`}
          items={computeItems(endpoint, pending.length > 0, setDialog)}
        >
          <Icon name="more" />
        </MenuButton>
      </div>
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
