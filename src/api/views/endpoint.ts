/** Endpoints: row to wire, request to input. */
import type { Static } from 'typebox';
import { endpointHostname, proxyHostname } from '../../core/connection-uri.ts';
import type { Endpoint, EndpointOptions } from '../../core/endpoint.ts';
import type { EndpointChanges } from '../../core/endpoint-update.ts';
import { whyAwake } from '../../core/idleness.ts';
import { pendingUpdate } from '../../core/pending-update.ts';
import { planOf } from '../../core/plan.ts';
import { provisioner } from '../../core/single-values.ts';
import { clampSize, temporaryDiskLimit } from '../../core/sizing.ts';
import { asBranchId } from '../../lib/ids.ts';
import type { ApiConfig } from '../kit/parts.ts';
import type {
  BranchEndpointOptions,
  EndpointCreateBody,
  Endpoint as EndpointSchema,
  EndpointUpdateBody,
} from '../schemas/endpoint.ts';
import { optionalTime, present, time } from './common.ts';

type EndpointView = Static<typeof EndpointSchema>;

export function endpointView(config: ApiConfig, row: Endpoint): EndpointView {
  return {
    id: row.id,
    host: endpointHostname(config, row.id),
    ...present({ name: row.name }),
    project_id: row.projectId,
    branch_id: row.branchId,
    autoscaling_limit_min_cu: row.minCu,
    autoscaling_limit_max_cu: row.maxCu,
    region_id: config.region,
    type: row.type,
    current_state: row.currentState,
    ...present({ pending_state: pendingState(row) }),
    settings: { pg_settings: {}, ...row.settings },
    pooler_enabled: row.poolerEnabled,
    pooler_mode: 'transaction',
    disabled: row.disabled,
    passwordless_access: row.passwordlessAccess,
    ...present({ last_active: optionalTime(row.lastActive) }),
    creation_source: 'console',
    created_at: time(row.createdAt),
    updated_at: time(row.updatedAt),
    ...present({ started_at: optionalTime(row.startedAt), suspended_at: optionalTime(row.suspendedAt) }),
    proxy_host: proxyHostname(config),
    suspend_timeout_seconds: row.suspendTimeoutSeconds,
    provisioner,
    ...sizeView(config, row),
    ...(row.currentState === 'active' && row.server?.release ? { compute_release_version: row.server.release } : {}),
    ...(row.currentState === 'active' && row.replication
      ? { replication_lag_bytes: row.replication.lagBytes, replication_lag_seconds: row.replication.lagSeconds }
      : {}),
    ...awakeView(row),
    ...waitingUpdate(config, row),
    ...writesView(row),
    temporary_disk: {
      limit_bytes: temporaryDiskLimit(config, givenSize(row)),
      enforcement: config.temporaryDiskEnforcement,
    },
  };
}

/** A change wakes a sleeping compute and puts it back to sleep; a compute that is awake stays awake. */
function pendingState({ pendingState, isChanging, currentState }: Endpoint) {
  const inTheEnd = currentState === 'active' ? 'active' : 'idle';
  return pendingState ?? (isChanging ? inTheEnd : null);
}

/** What the plan leaves of the size: for a server that runs, the plan that it was started under. */
function givenSize({ currentState, server, plan, minCu, maxCu }: Endpoint) {
  if (currentState === 'active' && server) return server.given;
  return plan ? clampSize({ minCu, maxCu }, planOf(plan)) : { minCu, maxCu };
}

function writesView({ currentState, server }: Endpoint): Partial<EndpointView> {
  if (currentState !== 'active' || server?.writesOff !== true) return {};
  const rule =
    'transactions are read-only unless they begin with BEGIN READ WRITE, which is for deleting; writes come back';
  if (server.isDiskFull === true) {
    const description = `the disk of the machine is nearly full: ${rule} when there is room`;
    return { writes_off: { reason: 'disk_full', enforcement: 'session', description } };
  }
  const why = 'the branch is larger than settings.quota.logical_size_bytes of its project';
  const description = `${why}: ${rule} when the branch is small enough`;
  return { writes_off: { reason: 'size_quota', quota: 'logical_size_bytes', enforcement: 'session', description } };
}

/** Whether a running compute is held to its size was decided when it started. */
function sizeView(config: ApiConfig, { currentState, currentCu }: Endpoint) {
  if (currentState !== 'active') return { limits_enforced: config.limitsEnforced };
  return { ...present({ current_cu: currentCu }), limits_enforced: currentCu !== null };
}

function awakeView(row: Endpoint): Partial<EndpointView> {
  const why = whyAwake(row);
  if (why === null) return {};
  const { work } = why.work ?? {};
  return {
    why_awake: {
      reason: why.reason,
      description: why.description,
      ...present({
        sleeps_at: optionalTime(why.sleepsAt),
        pid: work?.pid,
        role: work?.role,
        application_name: work?.applicationName,
        slot: work?.slot,
        since: work?.since && time(new Date(work.since)),
        observed_at: why.work && time(new Date(why.work.observedAt)),
      }),
    },
  };
}

/** A running server keeps its build and its plan's limits until it is started again. */
function waitingUpdate(config: ApiConfig, row: Endpoint): Partial<EndpointView> {
  const waiting = pendingUpdate(row, config.releases);
  if (waiting === null) return {};
  const { release, maxCu } = waiting;
  return { pending_update: present({ compute_release_version: release, autoscaling_limit_max_cu: maxCu }) };
}

export function endpointOptions(body: Static<typeof BranchEndpointOptions>): EndpointOptions {
  return {
    type: body.type,
    minCu: body.autoscaling_limit_min_cu,
    maxCu: body.autoscaling_limit_max_cu,
    suspendTimeoutSeconds: body.suspend_timeout_seconds,
    settings: body.settings,
    provisioner: body.provisioner,
  };
}

export function endpointChanges({ endpoint }: Static<typeof EndpointUpdateBody>): EndpointChanges {
  return {
    minCu: endpoint.autoscaling_limit_min_cu,
    maxCu: endpoint.autoscaling_limit_max_cu,
    suspendTimeoutSeconds: endpoint.suspend_timeout_seconds,
    branchId: endpoint.branch_id === undefined ? undefined : asBranchId(endpoint.branch_id),
    disabled: endpoint.disabled,
    name: endpoint.name,
    settings: endpoint.settings,
    provisioner: endpoint.provisioner,
    poolerEnabled: endpoint.pooler_enabled,
    passwordlessAccess: endpoint.passwordless_access,
  };
}

export function endpointInput({ endpoint }: Static<typeof EndpointCreateBody>) {
  return {
    ...endpointOptions(endpoint),
    branchId: asBranchId(endpoint.branch_id),
    name: endpoint.name,
    regionId: endpoint.region_id,
    poolerEnabled: endpoint.pooler_enabled,
    disabled: endpoint.disabled,
    passwordlessAccess: endpoint.passwordless_access,
  };
}
