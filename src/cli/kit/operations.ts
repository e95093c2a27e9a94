/** Waits for work that a request has queued, and shows a person how it goes on. */
import { setTimeout as pause } from 'node:timers/promises';
import type { ApiClient } from './client.ts';
import { CliFailure } from './failure.ts';
import type { GetProjectOperationReply, Operation } from './generated.ts';
import { progressLine } from './progress-line.ts';
import type { Session } from './session.ts';

const final: readonly Operation['status'][] = ['finished', 'error', 'cancelled', 'skipped'];
const firstPauseMs = 10;
const longestPauseMs = 1_000;

/** For a person who waits. Returns how they ended; throws when one has ended in another way than it was meant to. */
export async function waitFor({ client, parts }: Session, operations: readonly Operation[]): Promise<Operation[]> {
  const line = progressLine(parts.stderr);
  try {
    return await untilDone(client, operations, (at, count, now) => line.show(describeNow(at, count, now)));
  } finally {
    line.clear();
  }
}

type OnLook = (at: number, count: number, now: Operation) => void;

export async function untilDone(
  client: ApiClient,
  operations: readonly Operation[],
  onLook: OnLook = () => {},
): Promise<Operation[]> {
  const ends: Operation[] = [];
  for (const [at, queued] of operations.entries()) {
    const ended = await untilFinal(client, queued, (now) => onLook(at, operations.length, now));
    if (ended.status === 'error' || ended.status === 'cancelled') throw new CliFailure(describeEnd(ended));
    ends.push(ended);
  }
  return ends;
}

async function untilFinal(client: ApiClient, queued: Operation, onLook: (now: Operation) => void): Promise<Operation> {
  const path = `/projects/${encodeURIComponent(queued.project_id)}/operations/${queued.id}`;
  const startedAt = performance.now();
  for (let now = queued; ; ) {
    if (final.includes(now.status)) return now;
    onLook(now);
    await pause(pauseAfter(performance.now() - startedAt));
    // With its project, the operation of a deletion is gone in the end.
    const found = await client.find<GetProjectOperationReply>(path);
    if (found === null) return { ...now, status: 'finished' };
    now = found.operation;
  }
}

/** The end is seen at most a tenth later than it came, by a number of requests that grows with the logarithm of it. */
const pauseAfter = (waitedMs: number) => Math.min(Math.max(firstPauseMs, waitedMs / 10), longestPauseMs);

const words = (action: string) => action.replaceAll('_', ' ');

function describeEnd({ action, status, error, id }: Operation): string {
  return `${words(action)} ended as ${status}${error === undefined ? '' : `: ${error}`} (operation ${id})`;
}

function describeNow(at: number, count: number, { action, status, failures_count: failures }: Operation): string {
  const tries = failures > 0 ? `, try ${failures + 1}` : '';
  return `${words(action)} (${at + 1} of ${count}): ${status}${tries} …`;
}
