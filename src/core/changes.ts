/**
 * Tells those who watch which operations have begun, moved or ended. Notifications say that something changed, a
 * look at the table says what; a poll finds what no notification told. Each watcher hears only what it may see.
 */

import { selectOrganizationsOfUser } from '../db/accounts.ts';
import { type OperationChange, selectChangedOperations, selectDatabaseTime } from '../db/operation-changes.ts';
import { changesChannel, operationsChannel } from '../db/operations.ts';
import type { Caller } from './access.ts';
import type { Core } from './context.ts';

export interface Watcher {
  readonly caller: Caller;
  readonly onChange: (operation: OperationChange) => void;
}

/** A burst of notifications is one look. */
const gatherMs = 60;
const pollMs = 2_000;
/** A transaction may commit this much after the time that it wrote; what was seen before is not told twice. */
const overlapMs = 5_000;
const batchMax = 500;
/** Memberships change seldom. */
const membershipMs = 30_000;

export class ChangeFeed {
  readonly #core: Core;
  readonly #onFailure: (error: unknown) => void;
  readonly #watchers = new Map<Watcher, { organizations: ReadonlySet<string>; askedAt: number }>();
  readonly #seen = new Map<string, number>();
  /** Changes from here on are looked at; null until somebody watches. */
  #from: Date | null = null;
  #unlisten: (() => Promise<void>)[] = [];
  #timer: NodeJS.Timeout | undefined;
  #dueMs = 0;
  #started: Promise<void> | null = null;
  #looking: Promise<void> = Promise.resolve();

  constructor(core: Core, onFailure: (error: unknown) => void) {
    this.#core = core;
    this.#onFailure = onFailure;
  }

  get size(): number {
    return this.#watchers.size;
  }

  countOf(keyId: number): number {
    return [...this.#watchers.keys()].filter((watcher) => watcher.caller.keyId === keyId).length;
  }

  /** Returns the way to stop. The first watcher starts the feed, the last one ends it. */
  async watch(watcher: Watcher): Promise<() => void> {
    this.#watchers.set(watcher, { organizations: new Set(), askedAt: Number.NEGATIVE_INFINITY });
    this.#started ??= this.#start();
    try {
      await this.#started;
    } catch (error) {
      // Whoever comes next tries again.
      this.#started = null;
      this.#watchers.delete(watcher);
      throw error;
    }
    return () => {
      this.#watchers.delete(watcher);
      if (this.#watchers.size === 0) void this.close();
    };
  }

  async #start(): Promise<void> {
    const { database } = this.#core;
    this.#from = await selectDatabaseTime(database.sql);
    this.#seen.clear();
    this.#schedule(pollMs);
    for (const channel of [operationsChannel, changesChannel]) {
      if (this.#unlisten.length < 2)
        this.#unlisten.push(await database.listen(channel, () => this.#schedule(gatherMs)));
    }
  }

  async close(): Promise<void> {
    this.#started = null;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const ending = this.#unlisten;
    this.#unlisten = [];
    await Promise.all(ending.map((unlisten) => unlisten().catch(() => {})));
    await this.#looking;
  }

  /** The earliest look that was asked for stands: neither a trickle of notifications nor the poll puts it off. */
  #schedule(ms: number): void {
    if (this.#watchers.size === 0) return;
    const dueMs = performance.now() + ms;
    if (this.#timer !== undefined && this.#dueMs <= dueMs) return;
    clearTimeout(this.#timer);
    this.#dueMs = dueMs;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#looking = this.#looking
        .then(() => this.#look())
        .catch(this.#onFailure)
        .then(() => this.#schedule(pollMs));
    }, ms);
  }

  async #look(): Promise<void> {
    if (this.#from === null) return;
    const changes = await selectChangedOperations(this.#core.database.sql, this.#from, batchMax);
    const fresh = changes.filter((change) => this.#seen.get(change.id) !== change.updatedAt.getTime());
    for (const change of fresh) this.#seen.set(change.id, change.updatedAt.getTime());
    const last = changes.at(-1)?.updatedAt.getTime() ?? this.#from.getTime();
    // A full batch is a flood: then going forward matters more than the stragglers.
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
