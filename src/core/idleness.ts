/** When a compute that nobody uses falls asleep. Pure. */
import type { EndpointRow } from '../db/endpoints.ts';

export const defaultSuspendSeconds = 300;

/** Null for a compute that never sleeps. Every connection request moves it; the start itself counts as one. */
export function sleepsAt(
  endpoint: Pick<EndpointRow, 'suspendTimeoutSeconds' | 'lastActive' | 'startedAt' | 'createdAt'>,
): Date | null {
  const { suspendTimeoutSeconds: chosen, lastActive, startedAt, createdAt } = endpoint;
  if (chosen < 0) return null;
  const lastUse = Math.max(lastActive?.getTime() ?? 0, (startedAt ?? createdAt).getTime());
  return new Date(lastUse + (chosen === 0 ? defaultSuspendSeconds : chosen) * 1_000);
}
