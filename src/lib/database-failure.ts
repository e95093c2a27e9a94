/**
 * Which failures mean that the system database is away, or has just gone, and what that says about the work: the one
 * list for everything that answers requests.
 */

/**
 * `not_begun`: nothing of the work was kept, so a repeat is safe. `lost`: the connection broke during the work, and it
 * is not known whether a commit that was under way was kept.
 */
export type DatabaseFailure = 'not_begun' | 'lost';

/** No connection was made, or Postgres itself refused it or rolled back. */
const notBegun: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOENT',
  'EACCES',
  'CONNECT_TIMEOUT',
  'ETIMEDOUT',
  // Too many connections; cannot connect now; statement timeout; serialization failure; deadlock.
  '53300',
  '57P03',
  '57014',
  '40001',
  '40P01',
]);

const lost: ReadonlySet<string> = new Set([
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  'CONNECTION_ENDED',
  'ECONNRESET',
  'EPIPE',
  // Ended by an administrator, or because another process of the server crashed.
  '57P01',
  '57P02',
]);

/** Null for a failure of another kind. */
export function databaseFailure(thrown: unknown): DatabaseFailure | null {
  if (typeof thrown !== 'object' || thrown === null || !('code' in thrown)) return null;
  const { code } = thrown;
  if (typeof code !== 'string') return null;
  if (notBegun.has(code)) return 'not_begun';
  // Class 08 is what Postgres and drivers say of broken connections.
  return lost.has(code) || /^08[0-9A-Z]{3}$/.test(code) ? 'lost' : null;
}
