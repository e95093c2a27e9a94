/**
 * Reads users from a provider elsewhere and writes down what differs from what was known. One reader at a time, by a
 * lease that every write proves: what is written is in the order in which it was read.
 */

import type { ProviderProject, ProviderUser } from '../auth-client/client.ts';
import { isProviderFailure, ProviderError } from '../auth-client/errors.ts';
import type { Core } from '../core/context.ts';
import {
  deleteUserHint,
  type FollowLease,
  insertGoneUser,
  insertSeenUsers,
  renewFollowLease,
  selectPresentUserIds,
  selectUserHints,
} from '../db/auth-following.ts';
import type { Tx } from '../db/client.ts';
import { isUuid } from '../lib/ids.ts';
import type { Logger } from '../lib/log.ts';

const hintsAtOnce = 100;

export class LeaseLost extends Error {}

export interface UsersReaderParts {
  readonly core: Core;
  readonly log: Logger;
  readonly project: ProviderProject;
  readonly providerProjectId: string;
  readonly lease: FollowLease;
}

export class UsersReader {
  readonly #parts: UsersReaderParts;

  constructor(parts: UsersReaderParts) {
    this.#parts = parts;
  }

  /** Those whom somebody has named since they were last read. */
  async readHinted(): Promise<void> {
    const { core, log, providerProjectId } = this.#parts;
    const { sql } = core.database;
    for (;;) {
      const hints = await selectUserHints(sql, providerProjectId, hintsAtOnce);
      if (hints.length === 0) return;
      for (const hint of hints) {
        await this.#readOne(hint.userId).catch((error) => {
          // It would be refused again, and must not keep the others waiting; the next reading of all sees to it.
          if (!isProviderFailure(error, 'refused')) throw error;
          log.warn({ err: error, providerProjectId }, 'the auth provider refuses to show a user');
        });
        await deleteUserHint(sql, providerProjectId, hint);
      }
    }
  }

  /**
   * All of them. Pages shift while they are read, so who was not on any is asked for by name before it counts as
   * deleted; and who comes while they are read is not among those that are missed.
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
    // Another user than the one that was asked for is no answer.
    else if (user.id.toLowerCase() !== userId.toLowerCase()) throw nonsense();
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
  if (!isUuid(id)) throw nonsense();
  return id;
}

const nonsense = () => new ProviderError('refused', 'the auth provider answered with a user that has another id');
