/**
 * What a primary keeps for its read replicas: a login that can do nothing but replicate, and a slot for each replica,
 * which retains the WAL that it lacks. Runs in sessions of Catnap's own login; every function can be repeated.
 */

import { randomBytes } from 'node:crypto';
import { delay } from '../../lib/clock.ts';
import { buildVerifier } from '../../lib/scram-verifier.ts';
import type { ReplicaObservation } from '../interface/driver.ts';
import { adminScramIterations, replicationRole, replicationSecret } from '../interface/own-logins.ts';
import { type Session, sqlState } from './admin-session.ts';
import { quoteLiteral } from './sql-text.ts';

export async function ensureReplicationRole(sql: Session, adminSecret: string): Promise<void> {
  const secret = replicationSecret(adminSecret);
  const [found] = await sql<{ replicates: boolean; canLogin: boolean; verifier: string | null }[]>`
    SELECT rolreplication AS replicates, rolcanlogin AS "canLogin", rolpassword AS verifier
    FROM pg_authid WHERE rolname = ${replicationRole}`;
  // A tenant created this role and could change its password: not ours to use.
  if (found && !found.replicates) throw new Error(`the role name ${replicationRole} is taken by an ordinary role`);
  if (found?.canLogin && isVerifierOf(secret, found.verifier)) return;
  const verifier = buildVerifier(secret, randomBytes(16), adminScramIterations);
  const verb = found ? 'ALTER' : 'CREATE';
  await sql.unsafe(`${verb} ROLE ${replicationRole} LOGIN REPLICATION PASSWORD ${quoteLiteral(verifier)}`);
}

export function isVerifierOf(secret: string, verifier: string | null): boolean {
  const salt = /^SCRAM-SHA-256\$\d+:([^$]+)\$/.exec(verifier ?? '')?.[1];
  return salt !== undefined && buildVerifier(secret, Buffer.from(salt, 'base64'), adminScramIterations) === verifier;
}

/** Postgres reports a lag in time only while something is being sent; with nothing to replay there is none. */
export async function observeSlot(sql: Session, slot: string): Promise<ReplicaObservation> {
  const [found] = await sql<{ alive: boolean; bytes: number | null; seconds: number | null }[]>`
    SELECT restart_lsn IS NOT NULL AND wal_status IS DISTINCT FROM 'lost' AS alive,
           greatest(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn), 0)::float8 AS bytes,
           extract(epoch FROM replay_lag)::float8 AS seconds
    FROM pg_replication_slots LEFT JOIN pg_stat_replication ON pid = active_pid
    WHERE slot_name = ${slot}`;
  const { bytes = null, seconds = null } = found ?? {};
  const lag = bytes === null ? null : { bytes, seconds: bytes === 0 ? 0 : (seconds ?? 0) };
  return { lost: !found?.alive, lag };
}

export async function makeSlot(sql: Session, slot: string): Promise<void> {
  await dropSlot(sql, slot);
  await sql`SELECT pg_create_physical_replication_slot(${slot}, true, false)`;
}

/** A slot that is in use cannot be dropped, and its user needs a moment to go. */
export async function dropSlot(sql: Session, slot: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await sql`
        SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots
        WHERE slot_name = ${slot} AND active_pid IS NOT NULL`;
      await sql`SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = ${slot}`;
      return;
    } catch (error) {
      // 55006: in use. 42704: already gone.
      if (sqlState(error) === '42704') return;
      if (sqlState(error) !== '55006' || attempt === 50) throw error;
      await delay(20);
    }
  }
}
