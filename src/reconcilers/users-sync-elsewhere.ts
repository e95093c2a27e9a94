/**
 * Follows the users of providers elsewhere: webhooks name users, whose state is then read; and every few minutes all
 * users are read, because a webhook may be lost. A provider that fails is left alone for longer and longer.
 */

import { randomUUID } from 'node:crypto';
import type { ProviderProject, ProviderUser } from '../auth-client/client.ts';
import { isProviderFailure, ProviderError } from '../auth-client/errors.ts';
import type { Providers } from '../auth-client/providers.ts';
import { providerAccess } from '../core/auth-integration.ts';
import { type Core, readScope } from '../core/context.ts';
import type { Tx } from '../db/client.ts';
import { type Follower, follow } from '../db/follow.ts';
import {
  type ClaimedIntegration,
  claimIntegrationsToFollow,
  deleteUserHint,
  endFollowing,
  type FollowLease,
  insertGoneUser,
  insertSeenUsers,
  recordFollowFailure,
  releaseFollowing,
  renewFollowLease,
  selectPresentUserIds,
  selectUserHints,
  userHintsChannel,
} from '../db/users-sync.ts';
import { isUuid } from '../lib/ids.ts';
import type { Logger } from '../lib/log.ts';
import type { Reconciler } from './reconciler.ts';

export interface UsersSyncElsewhereParts {
  readonly core: Core;
  readonly providers: Providers;
  readonly log: Logger;
}

/** Beside the notifications; the turns that look for what is due are more frequent, and rest. */
const usualClaimMs = 60_000;
const integrationsAtOnce = 16;
/** Renewed with each write; longer than any call to a provider lasts. */
const leaseMs = 60_000;
const pollEveryMs = 5 * 60_000;
const retryMsMax = 5 * 60_000;
/** A key that was revoked and a project that is gone do not come back by themselves. */
const lockedOutRetryMs = 60 * 60_000;
const errorLengthMax = 500;
const hintsAtOnce = 100;

export class UsersSyncElsewhere {
  readonly #parts: UsersSyncElsewhereParts;
  readonly #stopping = new AbortController();
  readonly #busy = new Set<Promise<void>>();
  #follower: Follower | null = null;

  constructor(parts: UsersSyncElsewhereParts) {
    this.#parts = parts;
  }

  async start(claimEveryMs = usualClaimMs): Promise<void> {
    const { core, log } = this.#parts;
    this.#follower = await follow(core.database, {
      channels: [userHintsChannel],
      pollMs: claimEveryMs,
      // The reading is not waited for: a provider that hangs must not hold up the others.
      run: async () => void (await this.#beginDue()),
      onFailure: (error) => log.error({ err: error }, 'hints of users could not be read'),
    });
  }

  reconciler(): Reconciler {
    return { name: 'users-sync-elsewhere', everyMs: 1_000, turn: async () => this.#follower?.nudge() };
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#follower?.stop();
    await Promise.all(this.#busy);
  }

  /** Begins what is due; resolves when that is done. */
  async turn(): Promise<void> {
    await Promise.all(await this.#beginDue());
  }

  async #beginDue(): Promise<Promise<void>[]> {
    const limit = integrationsAtOnce - this.#busy.size;
    if (limit <= 0) return [];
    const lease = randomUUID();
    const claimed = await claimIntegrationsToFollow(this.#parts.core.database.sql, { lease, ms: leaseMs, limit });
    return claimed.map((row) => this.#begin(row, { id: row.id, lease, ms: leaseMs }));
  }

  #begin(row: ClaimedIntegration, lease: FollowLease): Promise<void> {
    const work = this.#follow(row, lease)
      .catch((error) => this.#parts.log.error({ err: error, integration: row.id }, 'users could not be followed'))
      .finally(() => {
        this.#busy.delete(work);
        // What was named while it was under way is due again.
        this.#follower?.nudge();
      });
    this.#busy.add(work);
    return work;
  }

  async #follow(row: ClaimedIntegration, lease: FollowLease): Promise<void> {
    const { core, providers, log } = this.#parts;
    const { sql } = core.database;
    try {
      const { providerProjectId, adminKey } = providerAccess(readScope(core), row);
      const client = providers.clientOf(row.providerUrl);
      const project = client.project(providerProjectId, adminKey, this.#stopping.signal);
      const reader = new UsersReader({ core, log, project, providerProjectId, lease });
      await reader.readHinted();
      if (row.isPollDue) await reader.readAll();
      // Not all at the same moment.
      const pollInMs = row.isPollDue ? pollEveryMs * (0.9 + 0.2 * Math.random()) : null;
      await endFollowing(sql, lease, { pollInMs });
    } catch (error) {
      if (error instanceof LeaseLost) return;
      if (this.#stopping.signal.aborted) await releaseFollowing(sql, lease);
      else await this.#fail(row, lease, error);
    }
  }

  /** Records the public message; the cause, which quotes the provider, goes to the log, once. */
  async #fail(row: ClaimedIntegration, lease: FollowLease, thrown: unknown): Promise<void> {
    const { core, log } = this.#parts;
    const told = thrown instanceof ProviderError ? thrown.message : 'users could not be read; the log has the cause';
    const error = told.slice(0, errorLengthMax);
    const growingMs = Math.min(retryMsMax, 1_000 * 2 ** Math.min(row.followFailures, 10));
    const waitMs = isProviderFailure(thrown, 'locked_out') ? lockedOutRetryMs : growingMs;
    if (row.followError !== error) {
      log.warn({ err: thrown, integration: row.id }, 'users of an auth provider elsewhere cannot be read');
    }
    await recordFollowFailure(core.database.sql, lease, { error, waitMs });
  }
}

class LeaseLost extends Error {}

interface UsersReaderParts {
  readonly core: Core;
  readonly log: Logger;
  readonly project: ProviderProject;
  readonly providerProjectId: string;
  readonly lease: FollowLease;
}

/**
 * Reads users and records what differs from what was known. One reader at a time, by a lease that every write checks:
 * users are written in the order in which they were read.
 */
class UsersReader {
  readonly #parts: UsersReaderParts;

  constructor(parts: UsersReaderParts) {
    this.#parts = parts;
  }

  /** Users that have been named since they were last read. */
  async readHinted(): Promise<void> {
    const { core, log, providerProjectId } = this.#parts;
    const { sql } = core.database;
    for (;;) {
      const hints = await selectUserHints(sql, providerProjectId, hintsAtOnce);
      if (hints.length === 0) return;
      for (const hint of hints) {
        await this.#readOne(hint.userId).catch((error) => {
          // It would be refused again, and must not keep the others waiting; the next reading of all users covers it.
          if (!isProviderFailure(error, 'refused')) throw error;
          log.warn({ err: error, providerProjectId }, 'the auth provider refuses to show a user');
        });
        await deleteUserHint(sql, providerProjectId, hint);
      }
    }
  }

  /**
   * Reads all users. Pages shift while they are read, so a user that was on none of them is asked for by id before it
   * counts as deleted; a user that is new since the reading began is not counted as missing.
   */
  async readAll(): Promise<void> {
    const { core, project, providerProjectId } = this.#parts;
    const missing = new Set(await selectPresentUserIds(core.database.sql, providerProjectId));
    for await (const page of project.users()) {
      for (const { id } of page) missing.delete(requireId(id).toLowerCase());
      await this.#write((tx) => insertSeenUsers(tx, providerProjectId, page));
      await this.readHinted();
    }
    for (const id of missing) await this.#readOne(id);
  }

  async #readOne(userId: string): Promise<void> {
    const { project, providerProjectId } = this.#parts;
    const user: ProviderUser | null = await project.findUser(userId);
    if (user === null) await this.#write((tx) => insertGoneUser(tx, providerProjectId, userId));
    // A reply about another user is no answer.
    else if (user.id.toLowerCase() !== userId.toLowerCase()) throw otherUser();
    else await this.#write((tx) => insertSeenUsers(tx, providerProjectId, [user]));
  }

  async #write(work: (tx: Tx) => Promise<number>): Promise<void> {
    const { core, lease } = this.#parts;
    await core.database.transaction(async (tx) => {
      if (!(await renewFollowLease(tx, lease))) throw new LeaseLost('somebody else reads these users now');
      await work(tx);
    });
  }
}

function requireId(id: string): string {
  if (!isUuid(id)) throw otherUser();
  return id;
}

const otherUser = () => new ProviderError('refused', 'the auth provider answered with a user that has another id');
