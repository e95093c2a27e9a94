/**
 * Follows the log of users: whatever has changed is copied at once into the databases of computes that are awake. A
 * notification makes it quick, a poll makes it right. Each tenant is on its own: a slow one delays nobody else.
 */

import type { ComputeDriver } from '../compute/interface/driver.ts';
import { bringUsersUpToDate, findUsersWork } from '../core/auth-sync.ts';
import type { Core } from '../core/context.ts';
import { type BehindRow, selectBranchesBehind } from '../db/auth-users.ts';
import { type Follower, follow } from '../db/follow.ts';
import type { Logger } from '../lib/log.ts';

export interface UserSyncParts {
  readonly core: Core;
  readonly driver: ComputeDriver;
  readonly log: Logger;
}

/** Notified by the embedded provider, and by the reconciler that follows a provider elsewhere. */
export const userChangesChannels = ['stack_user_changes', 'auth_user_changes'];
const pollMs = 1_000;
const tenantsAtOnce = 16;
/** Those that failed last time: a trigger that hangs costs a minute, and must not take the places of the others. */
const failingAtOnce = 4;

export class UserSync {
  readonly #parts: UserSyncParts;
  readonly #busy = new Map<string, Promise<void>>();
  readonly #failing = new Set<string>();
  #follower: Follower | null = null;

  constructor(parts: UserSyncParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    const { core, log } = this.#parts;
    this.#follower = await follow(core.database, {
      channels: userChangesChannels,
      pollMs,
      // The copies are not waited for: a slow tenant must not hold up the others.
      run: async () => void (await this.#beginDue()),
      onFailure: (error) => log.error({ err: error }, 'the log of users could not be read'),
    });
  }

  async stop(): Promise<void> {
    await this.#follower?.stop();
    await Promise.all(this.#busy.values());
  }

  /** Begins what is due and not under way; resolves when that is done. */
  async turn(): Promise<void> {
    await Promise.all(await this.#beginDue());
  }

  /** Returns the copies of all that were due and not under way, as far as there was room for them. */
  async #beginDue(): Promise<Promise<void>[]> {
    const due = await selectBranchesBehind(this.#parts.core.database.sql);
    const idle = due.filter(({ branchId }) => !this.#busy.has(branchId));
    for (const row of idle) if (this.#hasRoomFor(row)) this.#begin(row);
    return idle.flatMap(({ branchId }) => this.#busy.get(branchId) ?? []);
  }

  #hasRoomFor({ isFailing }: BehindRow): boolean {
    return this.#busy.size < tenantsAtOnce && !(isFailing && this.#failing.size >= failingAtOnce);
  }

  #begin(row: BehindRow): void {
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

  async #sync({ branchId, endpointId, projectId, tenantUid }: BehindRow): Promise<void> {
    const { core, driver, log } = this.#parts;
    const work = await findUsersWork({ sql: core.database.sql }, branchId);
    const ref = { projectId, tenantUid, branchId, endpointId };
    await bringUsersUpToDate(core, log, driver, { branchId, ref }, work);
  }
}
