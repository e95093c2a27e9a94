/**
 * Repeats what the source writes while, and after, its rows are copied. A portion of changes, and how far they reach,
 * are one transaction of the target: however often it is interrupted, each change is made once. Rows that were copied
 * at a later moment than the slot's begin have what was committed before that moment already.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { lsnBytes, lsnText } from '../lib/moments.ts';
import { Applier, type Change } from './apply.ts';
import { CopyFailure, wordsOf } from './failure.ts';
import { decode } from './pgoutput.ts';
import type { Report } from './progress.ts';
import { readApplied, readCopiedAt, writeApplied } from './record.ts';
import { type Place, reserve, type Session, type Sql } from './session.ts';

/** A portion ends with a transaction, behind so many changes. */
const portionChanges = 5_000;
const idleMs = 500;
/** While nothing is written to these tables, so often the source is told that it need not keep its log. */
const roundsBetweenMarks = 60;

export interface FollowRequest {
  readonly source: Sql;
  readonly target: Sql;
  readonly place: Place;
  /** Of the slot and of the publication. */
  readonly name: string;
  /** Called when the target has what the source has; following goes on until it resolves. */
  readonly whenCaughtUp: () => Promise<void>;
  readonly report: Report;
}

/** Returns when the target has everything that was committed before `whenCaughtUp` resolved. */
export async function follow(request: FollowRequest): Promise<void> {
  const { target, place, name, whenCaughtUp } = request;
  const session = await reserve(target, place);
  const follower = new Follower(request, session, await readCopiedAt(target), lsnBytes(await readApplied(target)));
  try {
    await follower.untilCaughtUp();
    await followUntil(follower, whenCaughtUp());
    await follower.untilCaughtUp();
  } catch (error) {
    throw error instanceof CopyFailure ? error : new CopyFailure(`${name} cannot be followed: ${wordsOf(error)}`);
  } finally {
    session.release();
  }
}

async function followUntil(follower: Follower, end: Promise<void>): Promise<void> {
  let isOver = false;
  const settled = end.finally(() => {
    isOver = true;
  });
  // It is awaited below; until then a failure must not count as unhandled.
  settled.catch(() => {});
  for (let round = 1; !isOver; round += 1) {
    if (round % roundsBetweenMarks === 0) await follower.untilCaughtUp();
    else await follower.portion();
    await Promise.race([settled, pause(idleMs)]);
  }
  await settled;
}

/**
 * A commit of our own, which reaches the disk behind all commits before it, also those that did not wait for that.
 * Returns where a record ends: what commits later begins there or behind it.
 */
async function markLog(source: Sql): Promise<bigint> {
  const lsn = await source.begin(async (tx) => {
    await tx.unsafe('SET LOCAL synchronous_commit = on');
    const [row] = await tx<{ lsn: string }[]>`
      SELECT pg_catalog.pg_logical_emit_message(true, 'catnap_import', '')::text AS lsn`;
    return row?.lsn ?? '0/0';
  });
  return lsnBytes(lsn);
}

class Follower {
  readonly #request: FollowRequest;
  readonly #session: Session;
  readonly #copiedAt: ReadonlyMap<string, bigint>;
  /** Where the last transaction ends that was repeated. */
  #applied: bigint;
  #changes = 0;

  constructor(request: FollowRequest, session: Session, copiedAt: ReadonlyMap<string, bigint>, applied: bigint) {
    this.#request = request;
    this.#session = session;
    this.#copiedAt = copiedAt;
    this.#applied = applied;
  }

  /** Has everything that was committed before the call. */
  async untilCaughtUp(): Promise<void> {
    const mark = await markLog(this.#request.source);
    while ((await this.portion()) >= portionChanges);
    await this.#advance(mark);
  }

  /** Returns how many messages there were. */
  async portion(): Promise<number> {
    const { source, name, report } = this.#request;
    const messages = await source<{ data: Buffer }[]>`
      SELECT data FROM pg_catalog.pg_logical_slot_peek_binary_changes(${name}, NULL, ${portionChanges},
        'proto_version', '1', 'publication_names', ${name})`;
    if (messages.length === 0) return 0;
    let end = this.#applied;
    await this.#session.unsafe('BEGIN');
    try {
      end = await this.#repeat(messages.map(({ data }) => data));
      await writeApplied(this.#session, lsnText(end));
      await this.#session.unsafe('COMMIT');
    } catch (error) {
      await this.#session.unsafe('ROLLBACK').catch(() => undefined);
      throw error;
    }
    this.#applied = end;
    await this.#advance(end);
    report({ phase: 'changes', name: lsnText(this.#applied), done: this.#changes, of: this.#changes });
    return messages.length;
  }

  async #repeat(portion: readonly Buffer[]): Promise<bigint> {
    const applier = new Applier();
    let end = this.#applied;
    let commitLsn = 0n;
    for (const message of portion.map(decode)) {
      if (message.kind === 'begin') commitLsn = message.commitLsn;
      else if (message.kind === 'relation') await applier.learn(this.#session, message.relation);
      else if (message.kind === 'commit') end = message.endLsn > end ? message.endLsn : end;
      else if (message.kind !== 'other' && commitLsn >= this.#applied) await this.#make(applier, message, commitLsn);
    }
    return end;
  }

  async #make(applier: Applier, change: Change, commitLsn: bigint): Promise<void> {
    await applier.apply(this.#session, change, (name) => {
      const copiedAt = this.#copiedAt.get(name);
      return copiedAt !== undefined && commitLsn >= copiedAt;
    });
    this.#changes += 1;
  }

  /** So that the source need not keep the log before it. */
  async #advance(lsn: bigint): Promise<void> {
    const { source, name } = this.#request;
    await source`SELECT pg_catalog.pg_replication_slot_advance(slot_name, ${lsnText(lsn)}::pg_lsn)
                   FROM pg_catalog.pg_replication_slots
                  WHERE slot_name = ${name} AND confirmed_flush_lsn < ${lsnText(lsn)}::pg_lsn`;
  }
}
