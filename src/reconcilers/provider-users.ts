/**
 * Follows the users of providers elsewhere: webhooks name users, whose state is then read; and every few minutes all
 * users are read, because a webhook may be lost. A provider that fails is left alone for longer and longer.
 */
import { randomUUID } from 'node:crypto';
import { isProviderFailure, ProviderError } from '../auth-client/errors.ts';
import type { Providers } from '../auth-client/providers.ts';
import { providerAccess } from '../core/auth-integration.ts';
import { type Core, readScope } from '../core/context.ts';
import {
  type ClaimedIntegration,
  claimIntegrationsToFollow,
  endFollowing,
  type FollowLease,
  recordFollowFailure,
  releaseFollowing,
  userHintsChannel,
} from '../db/auth-following.ts';
import { type Follower, follow } from '../db/follow.ts';
import type { Logger } from '../lib/log.ts';
import { LeaseLost, UsersReader } from './users-reader.ts';

export interface ProviderUsersParts {
  readonly core: Core;
  readonly providers: Providers;
  readonly log: Logger;
}

const claimEveryMs = 1_000;
const integrationsAtOnce = 16;
/** Renewed with each write; longer than any call to a provider lasts. */
const leaseMs = 60_000;
const pollEveryMs = 5 * 60_000;
const retryMsMax = 5 * 60_000;
/** A key that was revoked and a project that is gone do not come back by themselves. */
const lockedOutRetryMs = 60 * 60_000;
const errorLengthMax = 500;

export class ProviderUsers {
  readonly #parts: ProviderUsersParts;
  readonly #stopping = new AbortController();
  readonly #busy = new Set<Promise<void>>();
  #follower: Follower | null = null;

  constructor(parts: ProviderUsersParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    const { core, log } = this.#parts;
    this.#follower = await follow(core.database, {
      channels: [userHintsChannel],
      pollMs: claimEveryMs,
      // The reading is not waited for: a provider that hangs must not hold up the others.
      run: async () => void (await this.#beginDue()),
      onFailure: (error) => log.error({ err: error }, 'hints of users could not be read'),
    });
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
        // What was said while it was under way is due again.
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

  /** On record is what the public may read; its cause, which quotes the provider, is in the log, once. */
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
