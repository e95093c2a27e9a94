/** What happened to a branch, as points on the line of its time. */
import type { Branch, Snapshot } from '../api/generated.ts';

export interface Mark {
  readonly id: string;
  readonly kind: 'snapshot' | 'branch' | 'restore';
  readonly at: number;
  readonly text: string;
}

/** Only what lies between the two; both in milliseconds. */
export function marksOf(
  branch: Branch,
  branches: readonly Branch[],
  snapshots: readonly Snapshot[],
  [from, until]: readonly [number, number],
): readonly Mark[] {
  const taken = snapshots
    .filter(({ source_branch_id }) => source_branch_id === branch.id)
    .map(({ id, name, timestamp, created_at }): Mark => {
      return { id, kind: 'snapshot', at: Date.parse(timestamp ?? created_at), text: `Snapshot ${name}` };
    });
  const children = branches
    .filter(({ parent_id }) => parent_id === branch.id)
    .map(({ id, name, parent_timestamp, created_at }): Mark => {
      return { id, kind: 'branch', at: Date.parse(parent_timestamp ?? created_at), text: `Branch ${name}` };
    });
  const reset = branch.last_reset_at;
  const restored: Mark[] =
    reset === undefined ? [] : [{ id: 'restore', kind: 'restore', at: Date.parse(reset), text: 'Restored' }];
  return [...taken, ...children, ...restored].filter(({ at }) => at >= from && at <= until).sort((a, b) => a.at - b.at);
}

/** Where a moment is on the line, in percent. */
export const placeOf = (at: number, [from, until]: readonly [number, number]) =>
  until <= from ? 100 : Math.max(0, Math.min(100, (100 * (at - from)) / (until - from)));

export const secondMs = 1_000;

/**
 * The first and the last whole second of a span. A moment is written to the second, so the handle of the line has to
 * stand on such ones: from steps in between, a key could lead back to the second that it came from.
 */
export function secondsOf([from, until]: readonly [number, number]): readonly [number, number] {
  const last = Math.floor(until / secondMs) * secondMs;
  return [Math.min(last, Math.ceil(from / secondMs) * secondMs), last];
}
