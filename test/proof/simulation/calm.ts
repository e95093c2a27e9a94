/** Waits until everybody in a schedule waits at a gate or for a lock, or has ended: then the next move can be made. */
import type { Actor, Traffic } from './actor.ts';
import type { LentConnections } from './lent-connections.ts';
import { areTimersPending, nextTurn, within } from './quick-timers.ts';

/**
 * An actor that has no answer for so long may be waiting for a lock. To look sooner costs more than it saves: most
 * answers are only late, and while one schedule waits the others of its process go on.
 */
const lookFirstMs = 4;
const lookLastMs = 50;
const standstillMs = 60_000;

export interface Scene {
  readonly actors: ReadonlyMap<string, Actor>;
  readonly traffic: Traffic;
  readonly connections: LentConnections;
  readonly trace: readonly string[];
}

export async function untilCalm({ actors, traffic, connections, trace }: Scene): Promise<void> {
  const givenUpAt = performance.now() + standstillMs;
  for (let lookAfterMs = lookFirstMs; ; ) {
    await nextTurn();
    if (areTimersPending()) continue;
    if (traffic.areAllLocked) return;
    if (performance.now() > givenUpAt) throw new Error(`stands still: ${trace.slice(-5).join('; ')}`);
    await within(lookAfterMs, (call) => traffic.whenCalm(call));
    if (traffic.areAllLocked) continue;
    lookAfterMs = Math.min(lookAfterMs * 2, lookLastMs);
    // Two that wait for each other are ended by Postgres: only who waits at a gate can hold others up for good.
    if (isSomethingHeld(actors)) await traffic.look((pids) => connections.areLocked(pids));
  }
}

function isSomethingHeld(actors: ReadonlyMap<string, Actor>): boolean {
  return [...actors.values()].some(({ isInTransaction, inFlight }) => isInTransaction && inFlight === 0);
}
