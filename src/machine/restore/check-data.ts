/**
 * Checks recovered data: every table and every B-tree index with amcheck, and a count of all rows, which reads every
 * page and with it every checksum. Catnap's builds leave the extension out, not its library, so the functions are
 * declared here, for the session. Index expressions are not evaluated: they are the tenants' code, and this is a
 * superuser.
 */
import type postgres from 'postgres';
import { errorText } from '../../lib/errors.ts';
import type { ScratchServer } from '../recovery/scratch-server.ts';

export interface DataCheck {
  /** `reads` where the library is missing: pages and checksums were read, their contents not compared. */
  readonly method: 'amcheck' | 'reads';
  readonly databases: number;
  readonly tables: number;
  readonly indexes: number;
  readonly rows: number;
  /** What is wrong, as sentences. */
  readonly problems: readonly string[];
}

const none: DataCheck = { method: 'amcheck', databases: 0, tables: 0, indexes: 0, rows: 0, problems: [] };

export async function checkData(server: ScratchServer, superuser: string, firstDatabase: string): Promise<DataCheck> {
  const names = await within(server, superuser, firstDatabase, async (sql) => {
    const rows = await sql<{ name: string }[]>`
      SELECT datname AS name FROM pg_database WHERE datallowconn AND NOT datistemplate ORDER BY datname`;
    return rows.map(({ name }) => name);
  });
  let total = none;
  for (const name of names) {
    const found = await within(server, superuser, name, checkDatabase);
    total = {
      method: found.method === 'reads' ? 'reads' : total.method,
      databases: total.databases + 1,
      tables: total.tables + found.tables,
      indexes: total.indexes + found.indexes,
      rows: total.rows + found.rows,
      problems: [...total.problems, ...found.problems.map((problem) => `database ${name}: ${problem}`)],
    };
  }
  return total;
}

async function within<T>(
  server: ScratchServer,
  superuser: string,
  database: string,
  work: (sql: postgres.Sql) => Promise<T>,
): Promise<T> {
  const sql = server.connect(superuser, database);
  try {
    return await work(sql);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

async function checkDatabase(sql: postgres.Sql): Promise<Omit<DataCheck, 'databases'>> {
  const hasLibrary = await declareChecks(sql);
  const tables = await sql<{ oid: string; name: string; isCounted: boolean }[]>`
    SELECT c.oid::text, format('%I.%I', n.nspname, c.relname) AS name, c.relkind <> 't' AS "isCounted"
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_am a ON a.oid = c.relam
    WHERE c.relkind IN ('r', 'm', 't') AND c.relpersistence = 'p' AND a.amname = 'heap' ORDER BY c.oid`;
  const indexes = await sql<{ oid: string; name: string; isPlain: boolean }[]>`
    SELECT c.oid::text, format('%I.%I', n.nspname, c.relname) AS name,
      i.indexprs IS NULL AND i.indpred IS NULL AS "isPlain"
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_am a ON a.oid = c.relam
      JOIN pg_index i ON i.indexrelid = c.oid
    WHERE c.relkind = 'i' AND c.relpersistence = 'p' AND a.amname = 'btree' AND i.indisvalid ORDER BY c.oid`;
  const problems: string[] = [];
  const attempt = async (title: string, check: () => Promise<void>) => {
    await check().catch((error: unknown) => problems.push(`${title}: ${errorText(error)}`));
  };
  let rows = 0;
  for (const { oid, name, isCounted } of tables) {
    await attempt(`table ${name}`, async () => {
      if (hasLibrary) problems.push(...(await checkHeap(sql, oid)).map((found) => `table ${name}: ${found}`));
      if (!isCounted) return;
      const [counted] = await sql.unsafe<{ rows: string }[]>(`SELECT count(*) AS rows FROM ONLY ${name}`);
      rows += Number(counted?.rows ?? 0);
    });
  }
  for (const { oid, name, isPlain } of hasLibrary ? indexes : []) {
    await attempt(`index ${name}`, async () => {
      await sql`SELECT pg_temp.bt_index_check(${oid}::oid::regclass, ${isPlain}, false)`;
    });
  }
  const method = hasLibrary ? 'amcheck' : 'reads';
  return { method, tables: tables.length, indexes: hasLibrary ? indexes.length : 0, rows, problems };
}

async function checkHeap(sql: postgres.Sql, oid: string): Promise<string[]> {
  const found = await sql<{ block: string; message: string }[]>`
    SELECT blkno::text AS block, msg AS message
    FROM pg_temp.verify_heapam(${oid}::oid::regclass, true, true, 'none', NULL, NULL) LIMIT 10`;
  return found.map(({ block, message }) => `block ${block}: ${message}`);
}

async function declareChecks(sql: postgres.Sql): Promise<boolean> {
  try {
    await sql.unsafe(`CREATE FUNCTION pg_temp.bt_index_check(regclass, boolean, boolean) RETURNS void
      AS '$libdir/amcheck', 'bt_index_check' LANGUAGE C STRICT`);
    await sql.unsafe(`CREATE FUNCTION pg_temp.verify_heapam(regclass, boolean, boolean, text, bigint, bigint,
      OUT blkno bigint, OUT offnum integer, OUT attnum integer, OUT msg text) RETURNS SETOF record
      AS '$libdir/amcheck', 'verify_heapam' LANGUAGE C`);
    return true;
  } catch {
    return false;
  }
}
