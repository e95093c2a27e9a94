/**
 * What a running server would get from a restart: a newer build, or the limits of another plan. A compute that sleeps
 * gets it at its next start; one that never sleeps gets it in its project's maintenance window. Pure.
 */
import type { EndpointRow } from '../db/endpoints.ts';
import { dayMs } from '../lib/clock.ts';
import { invalid } from '../lib/errors.ts';
import type { MaintenanceWindow } from '../lib/model.ts';
import { planOf } from './plan.ts';
import { clampSize } from './sizing.ts';

export interface PendingUpdate {
  readonly release?: string;
  /** The largest size that the plan allows by now. */
  readonly maxCu?: number;
}

/** `releases` are the builds that servers are started from now, by major. Null when a restart would change nothing. */
export function pendingUpdate(
  { currentState, server, plan, minCu, maxCu }: EndpointRow,
  releases: Readonly<Record<number, string>>,
): PendingUpdate | null {
  if (currentState !== 'active' || !server) return null;
  const release = releases[Number.parseInt(server.release ?? '', 10)];
  const isNewer = release !== undefined && release !== server.release;
  const size = plan && clampSize({ minCu, maxCu }, planOf(plan));
  const isOtherSize = size && (size.minCu !== server.given.minCu || size.maxCu !== server.given.maxCu);
  if (!isNewer && !isOtherSize) return null;
  return { ...(isNewer && { release }), ...(isOtherSize && { maxCu: size.maxCu }) };
}

export function requireMaintenanceWindow(window: MaintenanceWindow | undefined): void {
  if (window === undefined || window.start_time !== window.end_time) return;
  throw invalid(
    'invalid request: body.project.settings.maintenance_window.end_time must differ from start_time; ' +
      'an earlier time is one of the next day',
  );
}

/** When the window opened that is open now; null while none is. A window may last beyond midnight. */
export function windowOpenedAt({ weekdays, start_time, end_time }: MaintenanceWindow, now: Date): Date | null {
  const midnight = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate());
  const [start, end] = [millisecondsOf(start_time), millisecondsOf(end_time)];
  const length = end > start ? end - start : end - start + dayMs;
  const opened = [midnight - dayMs, midnight]
    .filter((day) => weekdays.includes(weekdayOf(day)))
    .map((day) => day + start)
    .find((at) => at <= now.getTime() && now.getTime() < at + length);
  return opened === undefined ? null : new Date(opened);
}

/** 1 is Monday, 7 is Sunday. */
const weekdayOf = (day: number) => new Date(day).getUTCDay() || 7;

function millisecondsOf(time: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number);
  return (hours * 60 + minutes) * 60_000;
}
