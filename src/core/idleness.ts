/** When an unused compute falls asleep, and what keeps one awake. Pure; the reconciler and the API both use it. */
import type { EndpointRow, WorkKind, WorkSeen } from '../db/endpoints.ts';

export const defaultSuspendSeconds = 300;
/** A busy compute is asked again after this long, so that the work on display is never older. */
export const workSeenMs = 5_000;

type TimedEndpoint = Pick<EndpointRow, 'suspendTimeoutSeconds' | 'lastActive' | 'startedAt' | 'createdAt' | 'workSeen'>;

/**
 * Null for a compute that never sleeps. Every connection request postpones the time; the start itself counts as one,
 * and so does the end of the compute's last work.
 */
export function sleepsAt(endpoint: TimedEndpoint): Date | null {
  const { suspendTimeoutSeconds: chosen, lastActive, workSeen } = endpoint;
  if (chosen < 0) return null;
  const lastUse = Math.max(
    lastActive?.getTime() ?? 0,
    awakeSince(endpoint),
    workSeen?.lastWorkAt ? Date.parse(workSeen.lastWorkAt) : 0,
  );
  return new Date(lastUse + (chosen === 0 ? defaultSuspendSeconds : chosen) * 1_000);
}

/** Whether the server should be asked what it is doing: it may sleep, or it was busy when it was last asked. */
export function isDueForObservation(endpoint: TimedEndpoint, now: Date): boolean {
  const at = sleepsAt(endpoint);
  if (at === null) return false;
  const busy = currentWork(endpoint);
  return at <= now || (busy !== null && Date.parse(busy.observedAt) + workSeenMs <= now.getTime());
}

export type AwakeReason = 'recent_activity' | 'never_suspends' | WorkKind;

export interface WhyAwake {
  readonly reason: AwakeReason;
  readonly description: string;
  /** Null while work without a known end keeps it awake. */
  readonly sleepsAt: Date | null;
  readonly work: WorkSeen | null;
}

/** Null for a compute that is asleep, or on its way there. */
export function whyAwake(
  endpoint: TimedEndpoint & Pick<EndpointRow, 'currentState' | 'pendingState'>,
): WhyAwake | null {
  if (endpoint.currentState !== 'active' || endpoint.pendingState === 'idle') return null;
  const at = sleepsAt(endpoint);
  if (at === null) {
    return { reason: 'never_suspends', description: 'suspend_timeout_seconds is -1', sleepsAt: null, work: null };
  }
  const seen = currentWork(endpoint);
  if (seen?.work) return { reason: seen.work.kind, description: seen.work.description, sleepsAt: null, work: seen };
  const description = 'it was used, or busy, within suspend_timeout_seconds';
  return { reason: 'recent_activity', description, sleepsAt: at, work: null };
}

/** What it was busy with when last asked; nothing from before its latest start. */
function currentWork(endpoint: TimedEndpoint): WorkSeen | null {
  const { workSeen } = endpoint;
  return workSeen?.work && Date.parse(workSeen.observedAt) >= awakeSince(endpoint) ? workSeen : null;
}

function awakeSince({ startedAt, createdAt }: TimedEndpoint): number {
  return (startedAt ?? createdAt).getTime();
}
