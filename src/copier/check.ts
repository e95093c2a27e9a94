/** What is known of both databases before anything is written, and everything that a copy can be refused for. */
import { randomInt } from 'node:crypto';
import { wasmMajor } from '../compute/schema-dump/wasm-dump.ts';
import { CopyFailure, wordsOf } from './failure.ts';
import { hasJob } from './record.ts';
import { type Place, reserve, type Sql } from './session.ts';

export interface Facts {
  /** Where it is, and which one it is there: a branch has the identity of its parent. */
  readonly sourceId: string;
  readonly sourceMajor: number;
  readonly largeObjects: number;
  /** The role that copies, quoted where that is needed. */
  readonly targetUser: string;
}

interface Side {
  readonly place: Place;
  readonly sql: Sql;
}

interface ServerFacts {
  readonly id: string;
  readonly version: number;
  readonly user: string;
  readonly encoding: string;
  readonly largeObjects: number;
}

const oldestMajor = 12;

export async function checkDatabases(
  source: Side,
  target: Side,
  { withoutLargeObjects = false, knownAs }: { readonly withoutLargeObjects?: boolean; readonly knownAs?: string },
): Promise<Facts> {
  const [from, to] = await Promise.all([readServer(source), readServer(target)]);
  const [sourceMajor, targetMajor] = [from, to].map(({ version }) => Math.floor(version / 10_000)) as [number, number];
  await requireTwo(source, target);
  if (sourceMajor < oldestMajor || sourceMajor > wasmMajor) {
    throw new CopyFailure(`the source is Postgres ${sourceMajor}; allowed: ${oldestMajor} to ${wasmMajor}`);
  }
  if (targetMajor < sourceMajor) {
    throw new CopyFailure(
      `the source is Postgres ${sourceMajor} and the target ${targetMajor}: make a project of Postgres ${sourceMajor} or newer`,
    );
  }
  if (to.encoding !== 'UTF8') throw new CopyFailure(`the target has the encoding ${to.encoding}; allowed: UTF8`);
  if (from.largeObjects > 0 && !withoutLargeObjects) {
    throw new CopyFailure(
      `the source has ${from.largeObjects} large objects, which are not copied; --no-large-objects leaves them behind`,
    );
  }
  if (!(await hasJob(target.sql))) {
    await requireEmpty(target.sql);
    await requireExtensions(source.sql, target.sql);
  }
  const { largeObjects } = from;
  const { host, port, database } = source.place;
  return {
    sourceId: `${host}:${port}/${knownAs ?? database} ${from.id}`,
    sourceMajor,
    largeObjects,
    targetUser: to.user,
  };
}

async function readServer({ sql, place: { side } }: Side): Promise<ServerFacts> {
  const [row] = await sql<ServerFacts[]>`
    SELECT (SELECT system_identifier FROM pg_catalog.pg_control_system())::text || '/' ||
             (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())::text AS id,
           current_setting('server_version_num')::int AS version, quote_ident(current_user) AS user,
           (SELECT pg_catalog.pg_encoding_to_char(encoding) FROM pg_catalog.pg_database
             WHERE datname = current_database()) AS encoding,
           (SELECT count(*)::int FROM pg_catalog.pg_largeobject_metadata) AS "largeObjects"`.catch((error) => {
    throw new CopyFailure(`the ${side} cannot be read: ${wordsOf(error)}`);
  });
  if (row === undefined) throw new CopyFailure(`the ${side} does not answer`);
  return row;
}

/** A lock that is taken in one is seen in the other only if they are one: copies of a server have its identity. */
async function requireTwo(source: Side, target: Side): Promise<void> {
  const key = randomInt(2 ** 31);
  const session = await reserve(target.sql, target.place);
  try {
    await session`SELECT pg_catalog.pg_advisory_lock(${key}, 0)`;
    const [seen] = await source.sql`
      SELECT FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND classid = ${key} AND objid = 0 AND objsubid = 2
         AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())`;
    if (seen !== undefined) throw new CopyFailure('source and target are the same database');
  } finally {
    await session`SELECT pg_catalog.pg_advisory_unlock(${key}, 0)`.catch(() => undefined);
    session.release();
  }
}

/** What a new database of Catnap has is no hindrance: extensions, and empty schemas. */
async function requireEmpty(target: Sql): Promise<void> {
  const found = await target<{ name: string }[]>`
    SELECT c.oid::regclass::text AS name FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                        WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
     ORDER BY c.oid LIMIT 4`;
  if (found.length === 0) return;
  const names = found.slice(0, 3).map(({ name }) => name);
  throw new CopyFailure(
    `the target is not empty, it has ${names.join(', ')}${found.length > 3 ? ' and more' : ''}: make a database for the copy`,
  );
}

async function requireExtensions(source: Sql, target: Sql): Promise<void> {
  const wanted = await source<{ name: string }[]>`
    SELECT extname AS name FROM pg_catalog.pg_extension WHERE extname <> 'plpgsql' ORDER BY extname`;
  const offered = await target<{ name: string }[]>`SELECT name FROM pg_catalog.pg_available_extensions`;
  const names = new Set(offered.map(({ name }) => name));
  const missing = wanted.filter(({ name }) => !names.has(name)).map(({ name }) => name);
  if (missing.length === 0) return;
  throw new CopyFailure(
    `the source uses extensions that the target has not: ${missing.join(', ')}; drop them there, or install them here first`,
  );
}
