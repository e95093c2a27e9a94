/** Removes projects at an auth provider that no integration needs, however long the provider is down. */

import type { Providers } from '../auth-client/providers.ts';
import { adminKeySealContext } from '../core/auth-integration.ts';
import { deleteLeftover, type LeftoverRow, postponeLeftover, selectDueLeftovers } from '../db/auth-integrations.ts';
import { hourMs } from '../lib/clock.ts';
import { makeReconciler, type ReconcilerParts } from './reconciler.ts';

const waitMsMax = hourMs;

export const providerLeftovers = (providers: Providers) =>
  makeReconciler('provider-leftovers', 5_000, async (parts) => {
    const due = await selectDueLeftovers(parts.core.database.sql);
    return due.map((leftover) => ({
      subject: leftover.providerProjectId,
      work: () => remove(parts, providers, leftover),
    }));
  });

async function remove({ core, log }: ReconcilerParts, providers: Providers, leftover: LeftoverRow): Promise<void> {
  const { sql } = core.database;
  const { providerProjectId, providerUrl, failures } = leftover;
  try {
    const adminKey = core.box.open(leftover.adminKey, adminKeySealContext(providerProjectId));
    await providers.clientOf(providerUrl).project(providerProjectId, adminKey).remove();
    await deleteLeftover(sql, providerProjectId);
    log.info({ providerProjectId }, 'an unused project at the auth provider was removed');
  } catch (error) {
    log.warn(
      { err: error, providerProjectId, failures: failures + 1 },
      'a leftover at the auth provider could not be removed yet',
    );
    await postponeLeftover(sql, providerProjectId, Math.min(waitMsMax, 5_000 * 2 ** Math.min(failures, 12)));
  }
}
