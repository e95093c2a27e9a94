/**
 * The schema of a database as SQL text. `pg_dump` logs in as a role that is created for it, can only read, and whose
 * password expires after some minutes; it is never a superuser.
 */

import { randomBytes } from 'node:crypto';
import { CatnapError, withDetails } from '../../lib/errors.ts';
import { newSecret } from '../../lib/ids.ts';
import type { ComputeAddress } from '../../lib/model.ts';
import { buildVerifier } from '../../lib/scram-verifier.ts';
import { adminScramIterations } from '../interface/own-logins.ts';
import { adminLogin, type OwnLogin, type Session, shielded, sqlState, withSession } from '../server/admin-session.ts';
import { janitorName, janitorPattern } from '../server/janitor.ts';
import { asOptions } from '../server/own-settings.ts';
import { quoteLiteral } from '../server/sql-text.ts';
import { dumpByProgram, findPgDump, type ProgramFolders } from './native-dump.ts';
import { dumpByWasm, wasmMajor } from './wasm-dump.ts';
import { openWireSession } from './wire-session.ts';

export interface DumpRequest extends ProgramFolders {
  readonly address: ComputeAddress;
  readonly adminSecret: string;
  readonly database: string;
  readonly pgVersion: number;
}

/** With the programs that the settings name. */
export function makeDump({ programPath, pgBin }: { programPath: string; pgBin: Readonly<Record<number, string>> }) {
  return (address: ComputeAddress, of: Pick<DumpRequest, 'adminSecret' | 'database' | 'pgVersion'>) =>
    dumpSchema({ ...of, address, programPath, binDirectory: pgBin[of.pgVersion] });
}

const limits = { bytesMax: 64 * 1024 * 1024, timeoutMs: 60_000 };
/** A dump waits no longer than this for a lock, and none of its statements runs forever. */
const sessionLimits = { statement_timeout: '30s', lock_timeout: '5s', idle_in_transaction_session_timeout: '60s' };
/** Each dump is a thread or a process of its own. */
const atOnceMax = 2;
let running = 0;

export async function dumpSchema(request: DumpRequest): Promise<string> {
  const { address, pgVersion } = request;
  if (address.kind !== 'unix') throw new CatnapError('not_supported', 'schema dumps need a compute of this machine');
  const program = await findPgDump(pgVersion, request);
  if (program === null && wasmMajor < pgVersion) throw missing(pgVersion);
  if (running >= atOnceMax)
    throw new CatnapError('unavailable', 'too many schemas are being read', { retryAfterSeconds: 1 });
  running++;
  try {
    const sql = await asReader(request, async (login) => {
      const options = asOptions({ ...login.settings, ...sessionLimits });
      if (program !== null) return dumpByProgram(program, { socketPath: address.path, login, options }, limits);
      return dumpByWasm(await openWireSession(address.path, login, options), limits);
    });
    return withoutNoise(sql);
  } catch (error) {
    if (error instanceof CatnapError) throw error;
    throw new CatnapError('unavailable', 'the schema could not be read', { cause: error });
  } finally {
    running--;
  }
}

function missing(pgVersion: number): CatnapError {
  const how = `install a pg_dump of Postgres ${pgVersion} or newer on the PATH, or set CATNAP_PG_BIN_${pgVersion}`;
  return new CatnapError(
    'not_supported',
    withDetails(`no pg_dump fits this project: ${how}`, { pg_version: pgVersion }),
  );
}

/** Newer programs guard their output with a random word, which would make every dump differ from the last. */
const withoutNoise = (sql: string) => sql.replaceAll(/^\\(?:un)?restrict .*\n+/gm, '');

async function asReader<T>(request: DumpRequest, work: (login: OwnLogin) => Promise<T>): Promise<T> {
  const admin = adminLogin(request.adminSecret);
  const password = newSecret();
  const login = await withSession(request.address, admin, async (sql) => {
    const username = await makeReader(sql, password);
    return shielded(sql, { username, password, database: request.database });
  });
  try {
    return await work(login);
  } finally {
    await withSession(request.address, admin, (sql) => sql.unsafe(`DROP ROLE IF EXISTS ${login.username}`)).catch(
      () => undefined,
    );
  }
}

/** Also removes readers left behind by a kill: their password has expired. */
async function makeReader(sql: Session, password: string): Promise<string> {
  const leftovers = await sql<{ name: string }[]>`
    SELECT rolname AS name FROM pg_roles WHERE rolname ~ ${janitorPattern} AND rolvaliduntil < now()`;
  for (const { name } of leftovers) await sql.unsafe(`DROP ROLE IF EXISTS ${name}`).catch(ignoreUse);
  const name = janitorName();
  const verifier = buildVerifier(password, randomBytes(16), adminScramIterations);
  const [until] = await sql<{ at: string }[]>`SELECT (now() + interval '5 minutes')::text AS at`;
  await sql.unsafe(
    `CREATE ROLE ${name} LOGIN PASSWORD ${quoteLiteral(verifier)} VALID UNTIL ${quoteLiteral(until?.at ?? '')}
       CONNECTION LIMIT 1 IN ROLE pg_read_all_data`,
  );
  return name;
}

function ignoreUse(error: unknown): void {
  if (sqlState(error) === null) throw error;
}
