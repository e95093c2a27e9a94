/**
 * Janitors: roles for one piece of work inside a tenant's database, which Catnap's superuser must not enter. A janitor
 * is a member of just the roles concerned, so any code of the tenant's that runs there has only the rights that the
 * tenant already had.
 */

import { randomBytes } from 'node:crypto';
import { buildVerifier } from '../../lib/scram-verifier.ts';
import { adminScramIterations } from '../interface/own-logins.ts';
import { type Session, sqlState } from './admin-session.ts';
import { quoteIdentifier, quoteLiteral } from './sql-text.ts';

/** A random name, so that no tenant can have created the role first and kept control of it. */
export const janitorPattern = '^catnap_janitor_[0-9a-f]{16}$';

export const janitorName = () => `catnap_janitor_${randomBytes(8).toString('hex')}`;

export const dependentObjects = '2BP01';

/** Longer than any work takes: two janitors may be at work, and must not remove each other. */
const lifeMinutes = 60;

/** Also removes janitors that a killed Catnap left behind. */
export async function makeJanitor(sql: Session, password: string): Promise<string> {
  const leftovers = await sql<{ name: string }[]>`
    SELECT rolname AS name FROM pg_roles
    WHERE rolname ~ ${janitorPattern} AND (rolvaliduntil IS NULL OR rolvaliduntil < now())`;
  for (const { name } of leftovers) await dropped(sql, name);
  const janitor = janitorName();
  const verifier = buildVerifier(password, randomBytes(16), adminScramIterations);
  const [until] = await sql<{ at: string }[]>`SELECT (now() + ${lifeMinutes} * interval '1 minute')::text AS at`;
  const validUntil = quoteLiteral(until?.at ?? '');
  await sql.unsafe(`CREATE ROLE ${janitor} LOGIN PASSWORD ${quoteLiteral(verifier)} VALID UNTIL ${validUntil}`);
  return janitor;
}

/** False when something still depends on the role. */
export async function dropped(sql: Session, name: string): Promise<boolean> {
  try {
    await sql.unsafe(`DROP ROLE IF EXISTS ${quoteIdentifier(name)}`);
    return true;
  } catch (error) {
    if (sqlState(error) === dependentObjects) return false;
    throw error;
  }
}
