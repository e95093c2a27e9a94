/** The secret with which a new server is entered for the first time. */
import { randomBytes } from 'node:crypto';
import { buildVerifier } from '../../../lib/scram-verifier.ts';
import { adminRole, adminScramIterations } from '../../interface/own-logins.ts';
import { adminLogin, isRefused, openSession, type Session, sqlState } from '../../server/admin-session.ts';
import { keepLogStatement } from '../../server/history.ts';
import { quoteLiteral } from '../../server/sql-text.ts';
import type { HostedCompute } from '../channel/host-calls.ts';
import { addressOf } from './observation.ts';

/**
 * The template's secret is in every new clone, so no route may open before it is replaced. The new one is sent as a
 * verifier: the password itself never appears in a statement. If Catnap dies before the host forgets the first secret,
 * the next probe finds that one refused and the project's own accepted. Returns the session, which the caller ends.
 */
export async function replaceFirstSecret(compute: HostedCompute, firstSecret: string): Promise<Session> {
  const address = addressOf(compute);
  const verifier = buildVerifier(compute.adminSecret, randomBytes(16), adminScramIterations);
  // In one round trip, for which the client of a new project waits.
  const replace = `ALTER ROLE ${adminRole} PASSWORD ${quoteLiteral(verifier)}; ${keepLogStatement}`;
  try {
    return await enter(openSession(address, adminLogin(firstSecret)), (sql) => sql.unsafe(replace));
  } catch (error) {
    if (!isRefused(error) && !isOvertaken(error)) throw error;
    return enter(openSession(address, adminLogin(compute.adminSecret)), (sql) => sql`SELECT 1`);
  }
}

/** Somebody else has replaced it at the same moment: "tuple concurrently updated", or the slot is there by now. */
const isOvertaken = (error: unknown) => ['XX000', '42710'].includes(sqlState(error) ?? '');

/** The session stays open unless the work in it fails. */
async function enter(sql: Session, work: (sql: Session) => Promise<unknown>): Promise<Session> {
  try {
    await work(sql);
    return sql;
  } catch (error) {
    await sql.end({ timeout: 1 });
    throw error;
  }
}
