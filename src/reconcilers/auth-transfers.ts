/** Detects that a project at the provider was taken over: it sends no notice, but refuses another transfer. */

import type { Providers } from '../auth-client/providers.ts';
import { recordTransferred } from '../core/auth-integration.ts';
import { type AuthIntegrationRow, selectStartedTransfers, updateAuthIntegration } from '../db/auth-integrations.ts';
import { minuteMs } from '../lib/clock.ts';
import { makeReconciler, type ReconcilerParts } from './reconciler.ts';

/** A confirmation page is good for an hour; a little later no confirmation can come. */
const confirmableMs = 65 * minuteMs;

export const authTransfers = (providers: Providers) =>
  makeReconciler('auth-transfers', 3_000, async (parts) => {
    const started = await selectStartedTransfers(parts.core.database.sql);
    return started.map((row) => ({ subject: row.id, work: () => checkTransfer(parts, providers, row) }));
  });

async function checkTransfer({ core }: ReconcilerParts, providers: Providers, row: AuthIntegrationRow): Promise<void> {
  const { id, providerProjectId, providerUrl, transferStartedAt } = row;
  if (providerProjectId === null) return;
  const { sql } = core.database;
  if (!(await providers.clientOf(providerUrl).isTransferable(providerProjectId))) {
    await recordTransferred({ sql }, id);
    return;
  }
  const ageMs = core.clock.now().getTime() - (transferStartedAt?.getTime() ?? 0);
  if (ageMs > confirmableMs) await updateAuthIntegration(sql, id, { transferStatus: null });
}
