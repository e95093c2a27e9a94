/**
 * Follows the log of users: whatever has changed is copied at once into the databases of computes that are awake. A
 * notification makes it quick, a poll makes it right. Tenants are independent: a slow one delays no other.
 */

import { carryOutUsersSync, findUsersSyncWork } from '../core/users-sync.ts';
import { type Follower, follow } from '../db/follow.ts';
import { selectUsersSyncBehind, type UsersSyncBehindRow } from '../db/users-sync.ts';
import type { Reconciler, ReconcilerParts } from './reconciler.ts';

/** The embedded provider notifies on the first, the reader of a provider elsewhere on the second. */
export const userChangesChannels = ['stack_user_changes', 'auth_user_changes'];
/** Beside the notifications; the turns that look for what is due to be tried again are more frequent, and rest. */
const usualPollMs = 60_000;
const tenantsAtOnce = 16;
/** For those that failed last time: a trigger that hangs costs a minute, and must not keep the others waiting. */
const failingAtOnce = 4;

export class UsersSync {
  readonly #parts: ReconcilerParts;
  readonly #busy = new Map<string, Promise<void>>();
  readonly #failing = new Set<string>();
  #follower: Follower | null = null;

  constructor(parts: ReconcilerParts) {
    this.#parts = parts;
  }

  async start(pollMs = usualPollMs): Promise<void> {
    const { core, log } = this.#parts;
    this.#follower = await follow(core.database, {
      channels: userChangesChannels,
      pollMs,
      // The copies are not waited for: a slow tenant must not hold up the others.
      run: async () => void (await this.#beginDue()),
      onFailure: (error) => log.error({ err: error }, 'the log of users could not be read'),
    });
  }

  /** Looks for what is due while something is awake: only then can there be something. */
  reconciler(): Reconciler {
    return { name: 'users-sync', everyMs: 1_000, turn: async () => this.#follower?.nudge() };
  }

  async stop(): Promise<void> {
    await this.#follower?.stop();
    await Promise.all(this.#busy.values());
  }

  /** Begins what is due and not under way; resolves when that is done. */
  async turn(): Promise<void> {
    await Promise.all(await this.#beginDue());
  }

  async #beginDue(): Promise<Promise<void>[]> {
    const due = await selectUsersSyncBehind(this.#parts.core.database.sql);
    const idle = due.filter(({ branchId }) => !this.#busy.has(branchId));
    for (const row of idle) if (this.#hasRoomFor(row)) this.#begin(row);
    return idle.flatMap(({ branchId }) => this.#busy.get(branchId) ?? []);
  }

  #hasRoomFor({ isFailing }: UsersSyncBehindRow): boolean {
    return this.#busy.size < tenantsAtOnce && !(isFailing && this.#failing.size >= failingAtOnce);
  }

  #begin(row: UsersSyncBehindRow): void {
    const work = this.#sync(row)
      .catch((error) => this.#parts.log.error({ err: error, branch: row.branchId }, 'users could not be copied'))
      .finally(() => {
        this.#busy.delete(row.branchId);
        this.#failing.delete(row.branchId);
        // What has changed while it was under way is due again.
        this.#follower?.nudge();
      });
    this.#busy.set(row.branchId, work);
    if (row.isFailing) this.#failing.add(row.branchId);
  }

  async #sync({ branchId, endpointId, projectId, tenantUid }: UsersSyncBehindRow): Promise<void> {
    const work = await findUsersSyncWork(this.#parts.core.database, branchId);
    const ref = { projectId, tenantUid, branchId, endpointId };
    await carryOutUsersSync(this.#parts, branchId, ref, work);
  }
}
