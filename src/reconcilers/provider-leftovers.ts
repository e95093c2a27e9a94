/** Projects at an auth provider that no integration needs any more are removed there, however long it is away. */

import type { Providers } from '../auth-client/providers.ts';
import { adminKeySealContext } from '../core/auth-integration.ts';
import { deleteLeftover, type LeftoverRow, postponeLeftover, selectDueLeftovers } from '../db/auth-integrations.ts';
import type { Reconciler, ReconcilerParts } from './reconciler.ts';

const waitMsMax = 3_600_000;

export const providerLeftovers = (providers: Providers): Reconciler => ({
  name: 'provider-leftovers',
  everyMs: 5_000,
  turn: async (parts) => {
    for (const leftover of await selectDueLeftovers(parts.core.database.sql)) await remove(parts, providers, leftover);
  },
});

async function remove({ core, log }: ReconcilerParts, providers: Providers, leftover: LeftoverRow): Promise<void> {
  const { sql } = core.database;
  const { providerProjectId, providerUrl, failures } = leftover;
  try {
    const adminKey = core.box.open(leftover.adminKey, adminKeySealContext(providerProjectId));
    await providers.clientOf(providerUrl).project(providerProjectId, adminKey).remove();
    await deleteLeftover(sql, providerProjectId);
    log.info({ providerProjectId }, 'a project at the auth provider that nobody needs was removed');
  } catch (error) {
    log.warn(
      { err: error, providerProjectId, failures: failures + 1 },
      'a leftover at the auth provider stays for now',
    );
    await postponeLeftover(sql, providerProjectId, Math.min(waitMsMax, 5_000 * 2 ** Math.min(failures, 12)));
  }
}
