/**
 * Ways out of SQL, tried by each kind of role on a real server of each version. A refusal is checked by its SQLSTATE;
 * afterwards the catalogs that all databases share, the files of the server and the machine's ports are as they were.
 */
import { existsSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import postgres from 'postgres';
import { Bench, ownerAndDatabase, password, verifier } from '../../../src/compute/contract/bench.ts';
import type { ComputeObservation } from '../../../src/compute/interface/driver.ts';
import { makeLocalSubject } from '../../helpers/local-subject.ts';
import { type PartReport, progressOf } from './report.ts';
import type { Escape } from './sql-escape.ts';
import { fileEscapes } from './sql-files.ts';
import { networkEscapes } from './sql-network.ts';
import { plantAndVisit } from './sql-planted.ts';
import { rightEscapes } from './sql-rights.ts';

export const versions = [17, 18];
const canary = '/tmp/catnap-isolation';
/** The owner, two more that the API makes, and two that the owner makes by SQL, with nothing and with all there is. */
const actors = ['owner', 'peer', 'limited', 'plain', 'deputy'];
const rolesOfApi = [
  { name: 'owner', verifier },
  { name: 'peer', verifier },
  { name: 'limited', verifier, limited: true },
];

export const escapes = (port: number): readonly Escape[] => [...fileEscapes, ...rightEscapes, ...networkEscapes(port)];

export interface SqlOptions {
  readonly choose?: (all: readonly Escape[]) => readonly Escape[];
  readonly only?: readonly number[];
}

export async function tryEscapes({ choose = (all) => all, only = versions }: SqlOptions = {}): Promise<PartReport> {
  const found = { leaks: [] as string[], changes: [] as string[] };
  const rows: [string, number, number][] = [];
  for (const version of only) {
    const done = await onVersion(version, choose, found);
    for (const [actor, tried, right] of done) rows.push([`Postgres ${version}, ${actor}`, tried, right]);
  }
  return {
    part: 'sql',
    attempts: rows.reduce((sum, [, count]) => sum + count, 0),
    ...found,
    tables: [{ title: 'Ways out of SQL', columns: ['role', 'tried', 'led nowhere'], rows }],
  };
}

type Found = { readonly leaks: string[]; readonly changes: string[] };

async function onVersion(
  version: number,
  choose: (all: readonly Escape[]) => readonly Escape[],
  found: Found,
): Promise<[string, number, number][]> {
  const subject = await makeLocalSubject(version);
  const ports = await listen();
  const bench = new Bench(subject);
  try {
    const running = await bench.started();
    await bench.driver.configure(bench.ref, { ...ownerAndDatabase, roles: rolesOfApi });
    await furnish(bench, running);
    const before = await worldOf(bench, running);
    const done: [string, number, number][] = [];
    for (const actor of actors) {
      const all = choose(escapes(ports.port));
      const right = await tryAll(running, { actor, version, all, found });
      done.push([actor, all.length, right]);
      const after = await worldOf(bench, running);
      if (after !== before) found.changes.push(`${version} ${actor}: ${firstDifference(before, after)}`);
    }
    if (ports.reached() > 0) found.leaks.push(`${version}: a port of the machine was reached ${ports.reached()} times`);
    if (existsSync(canary)) found.changes.push(`${version}: ${canary} was written`);
    done.push(['planted code', ...(await plantAndVisit(bench, running, version, found))]);
    return done;
  } finally {
    ports.server.close();
    await bench.driver.removeProject(bench.ref);
    await subject.close();
  }
}

async function furnish(bench: Bench, running: ComputeObservation): Promise<void> {
  const made = [
    'create table t (line text)',
    "create function f() returns int language sql as 'select 1'",
    `create role plain login password '${password}'`,
    `create role deputy login createdb createrole password '${password}'`,
    'create extension postgres_fdw',
    'grant usage on foreign data wrapper postgres_fdw to public',
    'grant all on t to public',
  ];
  for (const text of made) {
    await bench.query(running, text).catch((error: unknown) => {
      if (!text.startsWith('grant usage')) throw error;
    });
  }
}

interface Trial {
  readonly actor: string;
  readonly version: number;
  readonly all: readonly Escape[];
  readonly found: Found;
}

/** Each in a transaction that is rolled back, where it can be in one: what would work must not spoil the next. */
async function tryAll(running: ComputeObservation, { actor, version, all, found }: Trial) {
  if (running.address?.kind !== 'unix') throw new Error('a local server has a unix socket');
  const login = { path: running.address.path, username: actor, password, database: 'app', max: 1 };
  const open = () => postgres({ ...login, onnotice: () => undefined, fetch_types: false });
  const say = progressOf(`sql, Postgres ${version}, ${actor}`);
  let sql = open();
  let right = 0;
  for (const [at, way] of all.entries()) {
    const fault = await faultOf(sql, way);
    if (fault === null) right += 1;
    else (way.isHarmless === undefined ? found.changes : found.leaks).push(`${version} ${actor}: ${fault}`);
    // What a statement has set for its session is not there for the next one.
    await sql.unsafe('reset all').catch(() => undefined);
    await sql.unsafe('reset session authorization').catch(() => undefined);
    if (fault !== null) {
      await sql.end({ timeout: 1 });
      sql = open();
    }
    say(at, all.length);
  }
  await sql.end({ timeout: 1 });
  return right;
}

async function faultOf(sql: postgres.Sql, { text, states, isHarmless }: Escape): Promise<string | null> {
  try {
    const rows = await rolledBack(sql, text);
    if (isHarmless !== undefined) return isHarmless(rows) ? null : `${text} -> ${JSON.stringify(rows)}`;
    const isNothing = rows.length === 0 && states.includes('none');
    return isNothing ? null : `${text} succeeded`;
  } catch (error) {
    if (!(error instanceof postgres.PostgresError)) throw error;
    if (isHarmless !== undefined && error.code === '42501') return null;
    return states.includes(error.code) ? null : `${text} -> ${error.code} ${error.message}`;
  }
}

const notInTransaction = '25001';

async function rolledBack(sql: postgres.Sql, text: string): Promise<Record<string, unknown>[]> {
  try {
    await sql.unsafe('begin');
    return [...(await sql.unsafe(text))];
  } catch (error) {
    if (!(error instanceof postgres.PostgresError) || error.code !== notInTransaction) throw error;
    await sql.unsafe('rollback');
    return [...(await sql.unsafe(text))];
  } finally {
    await sql.unsafe('rollback').catch(() => undefined);
  }
}

/** What all databases of the server share, and what its own files say. */
async function worldOf(bench: Bench, running: ComputeObservation): Promise<string> {
  const admin = { username: 'catnap_admin', password: bench.adminSecret, database: 'catnap' };
  const parts = [
    `select rolname, rolsuper, rolreplication, rolbypassrls, rolcanlogin, rolpassword, rolconnlimit, rolvaliduntil::text
       from pg_authid order by 1`,
    `select roleid::regrole::text, member::regrole::text, admin_option, grantor::regrole::text
       from pg_auth_members order by 1, 2`,
    `select datname, datdba::regrole::text, datallowconn, datistemplate, datconnlimit, datacl::text
       from pg_database order by 1`,
    'select setdatabase, setrole, setconfig from pg_db_role_setting order by 1, 2',
    'select spcname, spcowner, spcacl::text from pg_tablespace order by 1',
    'select slot_name from pg_replication_slots order by 1',
    'select subname from pg_subscription order by 1',
    'select roname from pg_replication_origin order by 1',
    'select sourcefile, name, setting, error from pg_file_settings order by 1, 2',
    'select parname, paracl::text from pg_parameter_acl order by 1',
  ];
  const lines: string[] = [];
  for (const text of parts) lines.push(JSON.stringify(await bench.query(running, text, admin)));
  return lines.join('\n');
}

function firstDifference(before: string, after: string): string {
  const [old, now] = [before.split('\n'), after.split('\n')];
  const at = now.findIndex((line, index) => line !== old[index]);
  return `${old[at]} became ${now[at]}`;
}

/** A port of this machine that nobody else uses, and whether anything has come to it. */
async function listen(): Promise<{ server: Server; port: number; reached: () => number }> {
  let reached = 0;
  const server = createServer((socket) => {
    reached += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return { server, port: typeof address === 'object' && address ? address.port : 0, reached: () => reached };
}
