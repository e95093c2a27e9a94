/** Catnap's own logins in every tenant's server: their names, and what both halves of a driver derive from a secret. */
import { createHmac } from 'node:crypto';

/** Catnap's own role and database inside every tenant's server. */
export const adminRole = 'catnap_admin';
export const adminDatabase = 'catnap';
/**
 * An empty database that every new server has and that becomes its first one: a rename takes a few milliseconds where
 * making one takes a hundred. It is ours only as long as `adminRole` owns it: a tenant may use the name as well.
 */
export const spareDatabase = 'catnap_spare';
/** The login of read replicas at their primary; it can do nothing else. */
export const replicationRole = 'catnap_replication';

/**
 * Catnap's passwords have 256 random bits: repeating the hash would not make guessing harder, only every probe and
 * every wake 4 ms slower on both sides.
 */
export const adminScramIterations = 1;

/** A secret of the project's own, which does not reveal the one that it is derived from. */
export function replicationSecret(adminSecret: string): string {
  return createHmac('sha256', adminSecret).update('catnap replication').digest('base64url');
}

/** Postgres allows lower-case letters, digits and underscores. */
export const slotName = (endpointId: string) => endpointId.toLowerCase().replaceAll('-', '_');
/** Keeps the log that a branch's history does not have yet. No endpoint's slot has this name. */
export const historySlot = 'catnap_history';
