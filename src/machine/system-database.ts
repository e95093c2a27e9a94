/**
 * The embedded system database: a Postgres 17 under `$CATNAP_HOME/system`, made at the first start, adopted when it is
 * already running, restarted when it dies. It listens on a unix socket that only its own uid and Catnap's processes can
 * reach. They log in as `catnap`, which owns the database, may create more, and is not a superuser; the superuser has
 * no password, and its connections are refused.
 */
import { randomBytes } from 'node:crypto';
import { chmod, chown, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { renameDurably } from '../compute/local/host/copy/tree.ts';
import {
  createLayout,
  type Layout,
  newClusterPrefix,
  socketFile,
  systemHistoriesName,
} from '../compute/local/host/home/layout.ts';
import { type Build, ensureBuild } from '../compute/local/host/postgres/builds.ts';
import { withNewCluster } from '../compute/local/host/postgres/cluster.ts';
import { findPostmaster, startPostmaster, stopPostmaster } from '../compute/local/host/postgres/postmaster.ts';
import { renderSettings } from '../compute/local/host/postgres/server-config.ts';
import { type Database, type DatabaseOptions, openDatabase } from '../db/client.ts';
import { delay } from '../lib/clock.ts';
import type { Config } from '../lib/config.ts';
import { errorText } from '../lib/errors.ts';
import { newSecret } from '../lib/ids.ts';
import type { Logger } from '../lib/log.ts';
import { buildVerifier } from '../lib/scram-verifier.ts';
import { ensureHome } from './home.ts';
import type { ScratchServer } from './recovery/scratch-server.ts';
import { makeSpareLog } from './spare-log.ts';
import { superviseServer } from './supervise-server.ts';
import { grantHistoryRights, hasHistoryRights, historyRights } from './system-history/rights.ts';
import { forgetSlot, SystemHistory } from './system-history/system-history.ts';

export const systemDatabaseMajor = 17;
const login = 'catnap';
const database = 'catnap';
/** Its password has 256 random bits, so repeating the hash adds no safety, only milliseconds to each connection. */
const scramIterations = 1;

const spareLogEveryMs = 60_000;

/** For `postgres(options)`. */
export interface SystemDatabaseConnection {
  readonly path: string;
  readonly username: string;
  readonly password: string;
  readonly database: string;
}

export interface SystemDatabase {
  readonly connection: SystemDatabaseConnection;
  readonly dataDirectory: string;
  /** Begins to keep its past, which goes off the machine from there; ends with the server. */
  keepHistory(retentionSeconds: () => Promise<number>): Promise<SystemHistory>;
  /** Ends supervision and the server; returns when the process is gone. */
  stop(): Promise<void>;
}

interface Parts {
  readonly config: SystemConfig;
  readonly layout: Layout;
  readonly build: Build;
  readonly uid: number | null;
  readonly dataDirectory: string;
  readonly connection: SystemDatabaseConnection;
  readonly log: Logger;
}

type SystemConfig = Pick<Config, 'home' | 'uids' | 'pgBin'> & { readonly backup?: object | undefined };

export async function startSystemDatabase(
  config: SystemConfig,
  log: Logger,
  progress: (line: string) => void = () => undefined,
): Promise<SystemDatabase> {
  const layout = await ensureHome(config);
  const build = await ensureBuild(systemDatabaseMajor, config, layout, progress);
  const password = await ensurePassword(layout, config.uids?.service ?? null);
  const path = socketFile(layout.systemSocketDirectory);
  const parts: Parts = {
    config,
    layout,
    build,
    log,
    uid: config.uids?.systemDatabase ?? null,
    dataDirectory: join(layout.system, 'pgdata'),
    connection: { path, username: login, password, database },
  };
  await ensureCluster(parts, progress);
  await start(parts, progress);
  if (config.backup !== undefined) await ensureHistoryRights(parts, progress);
  else await forgetSlot(parts);
  const supervision = new AbortController();
  const startAgain = () => start(parts, () => undefined, supervision.signal);
  const supervised = Promise.all([
    superviseServer({ ...parts, logDirectory: layout.system, startAgain }, supervision.signal),
    keepSpareLog(parts, supervision.signal),
  ]);
  let history: SystemHistory | null = null;
  return {
    connection: parts.connection,
    dataDirectory: parts.dataDirectory,
    async keepHistory(retentionSeconds) {
      history = await openHistory(parts, retentionSeconds);
      history.start();
      return history;
    },
    async stop() {
      supervision.abort();
      await supervised;
      await history?.stop();
      await stopPostmaster(parts.dataDirectory, parts.uid);
      await history?.copyRest().catch((error) => {
        log.error({ reason: errorText(error) }, 'the end of the system database’s log was not copied');
      });
    },
  };
}

function openHistory(parts: Parts, retentionSeconds: () => Promise<number>): Promise<SystemHistory> {
  const { dataDirectory, layout, uid, config, connection, log } = parts;
  return SystemHistory.open({
    pgVersion: systemDatabaseMajor,
    folder: join(layout.histories, systemHistoriesName),
    idFile: join(layout.system, 'history-id'),
    group: config.uids?.service ?? null,
    layout,
    dataDirectory,
    uid,
    connection,
    retentionSeconds,
    log,
  });
}

/** Written before the cluster is made: whatever is interrupted, the file and the server's verifier agree. */
async function ensurePassword(layout: Layout, owner: number | null): Promise<string> {
  const path = join(layout.system, 'password');
  const known = await readFile(path, 'utf8').catch(() => '');
  if (known !== '') return known;
  const password = newSecret();
  const fresh = `${path}.${process.pid}`;
  await writeFile(fresh, password, { mode: 0o600, flush: true });
  if (owner !== null) await chown(fresh, owner, owner);
  await renameDurably(fresh, path);
  return password;
}

/** For a command beside a running Catnap: the database that it uses, its own server or another. */
export async function systemDatabaseOptions({
  home,
  databaseUrl,
}: Pick<Config, 'home' | 'databaseUrl'>): Promise<DatabaseOptions> {
  if (databaseUrl !== undefined) return { url: databaseUrl };
  const layout = createLayout(home);
  return {
    path: socketFile(layout.systemSocketDirectory),
    username: login,
    password: await readFile(join(layout.system, 'password'), 'utf8'),
    database,
  };
}

export async function withSystemDatabase<T>(
  config: Pick<Config, 'home' | 'databaseUrl'>,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  const opened = openDatabase(await systemDatabaseOptions(config), { poolSize: 1, name: 'catnap-command' });
  try {
    return await work(opened);
  } finally {
    await opened.close();
  }
}

/** Gives a cluster that was recovered from a backup this home's password, and the rights that a new one has. */
export async function adoptCluster(config: SystemConfig, layout: Layout, server: ScratchServer): Promise<void> {
  const password = await ensurePassword(layout, config.uids?.service ?? null);
  const sql = server.connect('postgres', 'postgres');
  try {
    const verifier = buildVerifier(password, randomBytes(16), scramIterations);
    await sql.unsafe(`ALTER ROLE ${login} PASSWORD '${verifier}'`);
    for (const statement of historyRights(login)) await sql.unsafe(statement);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

async function ensureCluster(parts: Parts, progress: (line: string) => void): Promise<void> {
  const { dataDirectory, connection, uid, build, layout } = parts;
  if (await stat(dataDirectory).catch(() => null)) return;
  progress('creating the system database');
  const verifier = buildVerifier(connection.password, randomBytes(16), scramIterations);
  const statements = [
    `CREATE ROLE ${login} LOGIN CREATEDB PASSWORD '${verifier}'`,
    `CREATE DATABASE ${database} OWNER ${login} TEMPLATE template0`,
    `REVOKE ALL ON DATABASE ${database} FROM PUBLIC`,
    ...historyRights(login),
  ];
  // Beside the cluster, because the layout's own directory for such work may be on another filesystem.
  for (const name of await readdir(layout.system)) {
    if (name.startsWith(newClusterPrefix)) await rm(join(layout.system, name), { recursive: true, force: true });
  }
  await withNewCluster({ build, superuser: 'postgres', uid, statements }, layout.system, (made) =>
    renameDurably(made, dataDirectory),
  );
}

/**
 * Adopts the running server, or starts one, and returns when it answers a query. A server that was killed together with
 * an earlier Catnap may still be there for a moment: when it is gone, one is started in its place.
 */
async function start(parts: Parts, progress: (line: string) => void, signal?: AbortSignal): Promise<void> {
  const isAdopted = (await findPostmaster(parts.dataDirectory, parts.uid)) !== null;
  if (isAdopted && (await untilItAnswers(parts, signal))) return;
  progress('starting the system database');
  await startServer(parts);
  if (await untilItAnswers(parts, signal)) return;
  throw new Error(`the system database ended while starting; see ${parts.layout.system}/server.log`);
}

async function startServer(parts: Parts): Promise<void> {
  const { dataDirectory, layout, uid, build } = parts;
  await prepareSocketDirectory(parts);
  const configFile = join(layout.system, 'postgresql.conf');
  await writeReadable(join(layout.system, 'pg_hba.conf'), 'local all postgres reject\nlocal all all scram-sha-256\n');
  await writeReadable(configFile, renderSettings({ settings: settings(layout) }));
  const logFile = join(layout.system, 'server.log');
  await rename(logFile, `${logFile}.1`).catch(() => undefined);
  await startPostmaster({
    dataDirectory,
    uid,
    logFile,
    program: join(build.bin, 'postgres'),
    arguments: ['-c', `config_file=${configFile}`],
  });
}

/** A database that an older version made is restarted once for it, before any other process uses it. */
async function ensureHistoryRights(parts: Parts, progress: (line: string) => void): Promise<void> {
  const { connection, dataDirectory, uid, layout, build } = parts;
  if (await hasHistoryRights(connection)) return;
  progress('giving the system database a history');
  await stopPostmaster(dataDirectory, uid);
  const logFile = join(layout.system, 'rights.log');
  await grantHistoryRights({ build, dataDirectory, uid, layout, logFile }, login);
  await start(parts, progress);
}

function settings(layout: Layout): Record<string, string> {
  return {
    listen_addresses: '',
    port: '5432',
    unix_socket_directories: layout.systemSocketDirectory,
    unix_socket_permissions: '0777',
    hba_file: join(layout.system, 'pg_hba.conf'),
    ident_file: '/dev/null',
    cluster_name: 'catnap-system',
    shared_buffers: '32MB',
    max_connections: '200',
    // Catnap's own statements are short; parallel plans would only take processes from tenants.
    max_parallel_workers_per_gather: '0',
    max_logical_replication_workers: '0',
    // Old segments are kept to be used again, and used before many new ones are needed: a full disk has none.
    min_wal_size: '96MB',
    max_wal_size: '256MB',
    // What the history has not copied yet is kept this far.
    max_slot_wal_keep_size: '1GB',
    password_encryption: 'scram-sha-256',
    fsync: 'on',
    jit: 'off',
    huge_pages: 'off',
    timezone: 'UTC',
    log_timezone: 'UTC',
    log_checkpoints: 'off',
    log_min_messages: 'log',
    ...(process.platform === 'linux' && { recovery_init_sync_method: 'syncfs' }),
  };
}

/** Only the server's own uid and Catnap's processes can enter it. */
async function prepareSocketDirectory({ layout, uid, config }: Parts): Promise<void> {
  const directory = layout.systemSocketDirectory;
  await mkdir(directory, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  // A leftover lock could name a pid that another process now has; no server of ours runs at this point.
  await rm(socketFile(directory), { force: true });
  await rm(`${socketFile(directory)}.lock`, { force: true });
  if (uid !== null && config.uids) await chown(directory, uid, config.uids.service);
  await chmod(directory, uid === null ? 0o700 : 0o750);
}

/** False when it ends instead. Recovery after a crash may take long, so the only limit is that the process lives. */
async function untilItAnswers(parts: Parts, signal?: AbortSignal): Promise<boolean> {
  for (;;) {
    const running = await findPostmaster(parts.dataDirectory, parts.uid);
    if (!running) return false;
    if (running.ready && (await answers(parts.connection))) return true;
    if (signal?.aborted) return true;
    await delay(running.ready ? 50 : 5, signal);
  }
}

async function answers(connection: SystemDatabaseConnection): Promise<boolean> {
  const sql = postgres({ ...connection, max: 1, connect_timeout: 5, fetch_types: false, onnotice: () => undefined });
  try {
    await sql`SELECT 1`;
    return true;
  } catch (error) {
    // Waiting does not make a wrong password right.
    if (error instanceof postgres.PostgresError && error.code.startsWith('28')) throw error;
    return false;
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** Looked after once a minute; never fails, because the server runs without them too. */
async function keepSpareLog({ connection, dataDirectory, uid, log }: Parts, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const sql = postgres({ ...connection, max: 1, connect_timeout: 5, fetch_types: false, onnotice: () => undefined });
    try {
      const [found] = await sql<{ name: string }[]>`SELECT pg_walfile_name(pg_current_wal_insert_lsn()) AS name`;
      if (found !== undefined) await makeSpareLog(dataDirectory, found.name, uid);
    } catch (error) {
      log.warn({ reason: errorText(error) }, 'no log segments are kept ready for the system database');
    } finally {
      await sql.end({ timeout: 1 });
    }
    await delay(spareLogEveryMs, signal);
  }
}

async function writeReadable(path: string, text: string): Promise<void> {
  await writeFile(path, text);
  await chmod(path, 0o644);
}
