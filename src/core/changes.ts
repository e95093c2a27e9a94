/**
 * Reports to watchers which operations have begun, moved or ended. Notifications say that something changed, reading
 * the table says what; a poll finds what no notification announced. Each watcher hears only what it may see.
 */

import { selectOrganizationsOfUser } from '../db/accounts.ts';
import { keysChannel } from '../db/api-keys.ts';
import { type Follower, follow } from '../db/follow.ts';
import { type OperationChange, selectChangedOperations, selectDatabaseTime } from '../db/operation-changes.ts';
import { changesChannel, operationsChannel } from '../db/operations.ts';
import type { Caller } from './access.ts';
import type { Core } from './context.ts';

export interface Watcher {
  readonly caller: Caller;
  readonly onChange: (operation: OperationChange) => void;
  /** The caller may not be allowed to watch any more: its key was revoked, or the subscription was interrupted. */
  readonly onKeysChanged: () => void;
}

/** A burst of notifications is read together. */
const gatherMs = 60;
const usualPollMs = 2_000;
/** A transaction may commit this much after the time that it wrote; what was seen before is not reported twice. */
const overlapMs = 5_000;
const batchMax = 500;
/** Memberships rarely change. */
const membershipMs = 30_000;

export class ChangeFeed {
  readonly #core: Core;
  readonly #onFailure: (error: unknown) => void;
  readonly #pollMs: number;
  readonly #watchers = new Map<Watcher, { organizations: ReadonlySet<string>; askedAt: number }>();
  readonly #seen = new Map<string, number>();
  /** Changes since this time are read. */
  #from = new Date(0);
  #started: Promise<Pick<Follower, 'stop'>> | null = null;
  #closed: Promise<void> = Promise.resolve();

  constructor(core: Core, onFailure: (error: unknown) => void, pollMs = usualPollMs) {
    this.#core = core;
    this.#onFailure = onFailure;
    this.#pollMs = pollMs;
  }

  get size(): number {
    return this.#watchers.size;
  }

  countOf(keyId: number): number {
    return [...this.#watchers.keys()].filter((watcher) => watcher.caller.keyId === keyId).length;
  }

  /** Returns a function that stops watching. The first watcher starts the feed, the last one ends it. */
  async watch(watcher: Watcher): Promise<() => void> {
    this.#watchers.set(watcher, { organizations: new Set(), askedAt: Number.NEGATIVE_INFINITY });
    this.#started ??= this.#start();
    const started = this.#started;
    try {
      await started;
    } catch (error) {
      // The next watcher tries again; it may have begun to already.
      if (this.#started === started) this.#started = null;
      this.#watchers.delete(watcher);
      throw error;
    }
    return () => {
      this.#watchers.delete(watcher);
      if (this.#watchers.size === 0) void this.close();
    };
  }

  async #start(): Promise<Pick<Follower, 'stop'>> {
    const { database } = this.#core;
    // The feed before this one may still be reading, and the two would share what was seen.
    await this.#closed;
    this.#from = await selectDatabaseTime(database.sql);
    this.#seen.clear();
    const unlisten = await database.listen(keysChannel, (of) => this.#recheck(of));
    const follower = await follow(database, {
      channels: [operationsChannel, changesChannel],
      pollMs: this.#pollMs,
      gatherMs,
      run: () => this.#report(),
      onFailure: this.#onFailure,
    });
    return {
      stop: async () => {
        await follower.stop();
        await unlisten();
      },
    };
  }

  /** `of` is a key or a project; empty when the subscription was renewed, and a notification may have been lost. */
  #recheck(of: string): void {
    for (const watcher of [...this.#watchers.keys()]) {
      const { keyId, projectId } = watcher.caller;
      if (of === '' || of === String(keyId) || of === projectId) watcher.onKeysChanged();
    }
  }

  async close(): Promise<void> {
    const started = this.#started;
    this.#started = null;
    const stop = async () => (await started)?.stop();
    // A feed that has lost its connection still counts as closed.
    this.#closed = Promise.all([this.#closed, stop().catch(() => {})]).then(() => {});
    await this.#closed;
  }

  async #report(): Promise<void> {
    const changes = await selectChangedOperations(this.#core.database.sql, this.#from, batchMax);
    const fresh = changes.filter((change) => this.#seen.get(change.id) !== change.updatedAt.getTime());
    for (const change of fresh) this.#seen.set(change.id, change.updatedAt.getTime());
    const last = changes.at(-1)?.updatedAt.getTime() ?? this.#from.getTime();
    // A full batch is a flood, in which moving on matters more than late commits.
    const next = changes.length === batchMax ? last : Math.max(this.#from.getTime(), last - overlapMs);
    this.#from = new Date(next);
    for (const [id, at] of this.#seen) if (at < next) this.#seen.delete(id);
    if (fresh.length === 0) return;
    for (const watcher of [...this.#watchers.keys()]) {
      const maySee = await this.#sightOf(watcher);
      for (const change of fresh) if (maySee(change)) watcher.onChange(change);
    }
  }

  async #sightOf(watcher: Watcher): Promise<(change: OperationChange) => boolean> {
    const { caller } = watcher;
    if (caller.kind === 'project') return (change) => change.projectId === caller.projectId;
    if (caller.kind === 'organization') return (change) => change.organizationId === caller.organizationId;
    const nowMs = this.#core.clock.now().getTime();
    const known = this.#watchers.get(watcher);
    if (known === undefined) return () => false;
    if (nowMs - known.askedAt > membershipMs) {
      const found = await selectOrganizationsOfUser(this.#core.database.sql, caller.userId);
      known.organizations = new Set(found.map(({ id }) => id));
      known.askedAt = nowMs;
    }
    return (change) => known.organizations.has(change.organizationId);
  }
}
