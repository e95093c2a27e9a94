/**
 * The statements on `neon_auth.users_sync`. Its four readable columns are generated from the provider's own object, as
 * on the hosted service. The position is in the same database, so that a restore brings back both together.
 */

import type postgres from 'postgres';
import type { ChangesAfter, UserChange, UsersTable } from '../../lib/users-sync.ts';
import { quoteIdentifier } from './sql-text.ts';

type Transaction = postgres.TransactionSql;

const makeTable = `
  CREATE TABLE neon_auth.users_sync (
    raw_json jsonb NOT NULL,
    id text GENERATED ALWAYS AS (raw_json ->> 'id') STORED NOT NULL PRIMARY KEY,
    name text GENERATED ALWAYS AS (raw_json ->> 'display_name') STORED,
    email text GENERATED ALWAYS AS (raw_json ->> 'primary_email') STORED,
    created_at timestamptz GENERATED ALWAYS AS (
      to_timestamp(trunc(((raw_json ->> 'signed_up_at_millis')::bigint)::double precision) / 1000)) STORED,
    updated_at timestamptz,
    deleted_at timestamptz
  );
  CREATE INDEX users_sync_deleted_at_idx ON neon_auth.users_sync (deleted_at);
  COMMENT ON TABLE neon_auth.users_sync IS 'Users of the auth provider, copied here by Catnap. Change them there.'`;

const makePositions = `
  CREATE TABLE neon_auth.users_sync_position (
    provider_project_id text PRIMARY KEY,
    position bigint NOT NULL,
    table_oid oid NOT NULL,
    granted_to oid,
    updated_at timestamptz NOT NULL
  );
  COMMENT ON TABLE neon_auth.users_sync_position IS 'How far Catnap has copied users into users_sync.'`;

interface Found {
  readonly schema: number | null;
  readonly table: number | null;
  readonly positions: number | null;
  readonly reader: number | null;
}

/** Creates what is missing. A new table starts at the first change, and its reader role is granted access again. */
export async function prepareTable(tx: Transaction, table: UsersTable): Promise<number> {
  // Two workers may arrive at once, and only one of them can create the names.
  await tx`SELECT pg_advisory_xact_lock(7070, 5)`;
  const found = await findTable(tx, table);
  if (found.schema === null) await tx.unsafe('CREATE SCHEMA neon_auth');
  if (found.table === null) await tx.unsafe(makeTable);
  if (found.positions === null) await tx.unsafe(makePositions);
  const { table: oid, reader } = found.table === null ? await findTable(tx, table) : found;
  const [known] = await tx<{ position: string; tableOid: number; grantedTo: number | null }[]>`
    SELECT position, table_oid AS "tableOid", granted_to AS "grantedTo" FROM neon_auth.users_sync_position
    WHERE provider_project_id = ${table.providerProjectId}`;
  const isSameTable = known?.tableOid === oid;
  if (isSameTable && known.grantedTo === reader) return Number(known.position);
  if (reader !== null) await grant(tx, table.readerName);
  const position = isSameTable ? Number(known.position) : 0;
  await tx`
    INSERT INTO neon_auth.users_sync_position (provider_project_id, position, table_oid, granted_to, updated_at)
    VALUES (${table.providerProjectId}, ${position}, ${oid}, ${reader}, now())
    ON CONFLICT (provider_project_id) DO UPDATE SET position = excluded.position, table_oid = excluded.table_oid,
      granted_to = excluded.granted_to, updated_at = excluded.updated_at`;
  return position;
}

async function findTable(tx: Transaction, { readerName }: UsersTable): Promise<Found> {
  const [found] = await tx<Found[]>`
    SELECT to_regnamespace('neon_auth')::oid AS schema, to_regclass('neon_auth.users_sync')::oid AS table,
           to_regclass('neon_auth.users_sync_position')::oid AS positions,
           (SELECT oid FROM pg_roles WHERE rolname = ${readerName}) AS reader`;
  return found ?? { schema: null, table: null, positions: null, reader: null };
}

async function grant(tx: Transaction, readerName: string): Promise<void> {
  const reader = quoteIdentifier(readerName);
  await tx.unsafe(`GRANT USAGE ON SCHEMA neon_auth TO ${reader}; GRANT SELECT ON neon_auth.users_sync TO ${reader}`);
}

/**
 * Applies the next changes and the position after them, both or neither; null when there is nothing more. A position
 * before `reached` was reset by someone with access to the table, who could do so forever.
 */
export async function applyChanges(
  tx: Transaction,
  { providerProjectId }: UsersTable,
  reached: number,
  changesAfter: ChangesAfter,
): Promise<number | null> {
  const [known] = await tx<{ position: string }[]>`
    SELECT position FROM neon_auth.users_sync_position WHERE provider_project_id = ${providerProjectId} FOR UPDATE`;
  if (known === undefined) throw new Error('the position of users_sync was removed');
  if (Number(known.position) < reached) throw new Error('the position of the copying of users does not stay');
  const changes = await changesAfter(Number(known.position));
  const last = changes.at(-1);
  if (last === undefined) return null;
  const latest = [...new Map(changes.map((change) => [change.userId, change])).values()];
  await writeUsers(
    tx,
    latest.filter((change) => change.kind !== 'deleted'),
  );
  await markDeleted(
    tx,
    latest.filter((change) => change.kind === 'deleted'),
  );
  await tx`
    UPDATE neon_auth.users_sync_position SET position = ${last.seq}, updated_at = now()
    WHERE provider_project_id = ${providerProjectId}`;
  return last.seq;
}

/** A deleted user stays deleted, even if a change arrives late. */
async function writeUsers(tx: Transaction, changes: readonly UserChange[]): Promise<void> {
  if (changes.length === 0) return;
  const rows = JSON.stringify(changes.map(({ user, occurredAt }) => ({ user, at: occurredAt.toISOString() })));
  await tx`
    INSERT INTO neon_auth.users_sync AS t (raw_json, updated_at)
    SELECT c -> 'user', (c ->> 'at')::timestamptz FROM jsonb_array_elements(${rows}::text::jsonb) AS c
    ON CONFLICT (id) DO UPDATE SET raw_json = excluded.raw_json, updated_at = excluded.updated_at
    WHERE t.deleted_at IS NULL`;
}

/** The row stays, with the user's last known data. */
async function markDeleted(tx: Transaction, changes: readonly UserChange[]): Promise<void> {
  if (changes.length === 0) return;
  const rows = JSON.stringify(changes.map(({ userId, occurredAt }) => ({ id: userId, at: occurredAt.toISOString() })));
  await tx`
    UPDATE neon_auth.users_sync AS t SET deleted_at = (c ->> 'at')::timestamptz, updated_at = (c ->> 'at')::timestamptz
    FROM jsonb_array_elements(${rows}::text::jsonb) AS c WHERE t.id = c ->> 'id' AND t.deleted_at IS NULL`;
}
