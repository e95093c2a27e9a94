/** The secret with which a new server is entered for the first time. */
import { randomBytes } from 'node:crypto';
import { buildVerifier } from '../../../lib/scram-verifier.ts';
import { adminRole, adminScramIterations } from '../../interface/own-logins.ts';
import { adminLogin, isRefused, withSession } from '../../server/admin-session.ts';
import { keepLogForHistory } from '../../server/history.ts';
import { quoteLiteral } from '../../server/sql-text.ts';
import type { HostedCompute } from '../channel/host-calls.ts';
import { addressOf } from './observation.ts';

/**
 * The template's secret is in every new clone, so no route may open before it is replaced. The new one is sent as a
 * verifier: the password itself never appears in a statement. If Catnap dies before the host forgets the first secret,
 * the next probe finds that one refused and the project's own accepted.
 */
export async function replaceFirstSecret(compute: HostedCompute, firstSecret: string): Promise<void> {
  const address = addressOf(compute);
  const verifier = buildVerifier(compute.adminSecret, randomBytes(16), adminScramIterations);
  try {
    await withSession(address, adminLogin(firstSecret), async (sql) => {
      await sql.unsafe(`ALTER ROLE ${adminRole} PASSWORD ${quoteLiteral(verifier)}`);
      await keepLogForHistory(sql);
    });
  } catch (error) {
    if (!isRefused(error)) throw error;
    await withSession(address, adminLogin(compute.adminSecret), (sql) => sql`SELECT 1`);
  }
}
