/**
 * A Postgres server on a data directory that nothing else serves, for work on the data itself: recovering it, checking
 * it, giving the system database's login a right. It asks for no password, and listens in a directory that only its own
 * uid and the user who runs this process can enter.
 */
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { type Layout, socketFile } from '../../compute/local/host/home/layout.ts';
import type { Build } from '../../compute/local/host/postgres/builds.ts';
import { findPostmaster, startPostmaster, stopPostmaster } from '../../compute/local/host/postgres/postmaster.ts';
import { renderSettings, type Settings } from '../../compute/local/host/postgres/server-config.ts';
import { delay } from '../../lib/clock.ts';

export interface ScratchSpec {
  readonly build: Build;
  readonly dataDirectory: string;
  /** The owner of the data directory, or null for our own uid. */
  readonly uid: number | null;
  readonly layout: Pick<Layout, 'sockets'>;
  /** Where the server's output goes. */
  readonly logFile: string;
  readonly settings?: Settings;
}

export interface ScratchServer {
  /** Its socket; no password is asked for. */
  readonly path: string;
  /** As a superuser; the caller ends the session. */
  connect(superuser: string, database: string): postgres.Sql;
  /** A clean shutdown; returns when the process is gone. */
  stop(): Promise<void>;
}

/** Room for as many prepared transactions as a source may have left open. */
const defaults: Settings = {
  listen_addresses: '',
  port: '5432',
  unix_socket_permissions: '0700',
  ident_file: '/dev/null',
  shared_buffers: '64MB',
  max_connections: '10',
  max_prepared_transactions: '1000',
  max_locks_per_transaction: '64',
  autovacuum: 'off',
  archive_mode: 'off',
  max_logical_replication_workers: '0',
  jit: 'off',
  huge_pages: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_min_messages: 'log',
  log_checkpoints: 'off',
  ...(process.platform === 'linux' && { recovery_init_sync_method: 'syncfs' }),
};

/** Returns when it accepts sessions, however long its recovery takes; throws with its last words if it ends instead. */
export async function startScratchServer(spec: ScratchSpec): Promise<ScratchServer> {
  const { dataDirectory, uid, logFile, build } = spec;
  // One that a killed run has left behind.
  await stopPostmaster(dataDirectory, uid);
  const directory = await mkdtemp(join(spec.layout.sockets, 'x'));
  const stop = async () => {
    await stopPostmaster(dataDirectory, uid);
    await rm(directory, { recursive: true, force: true });
  };
  try {
    const [configFile, hbaFile] = [join(directory, 'postgresql.conf'), join(directory, 'pg_hba.conf')];
    const places = { unix_socket_directories: directory, hba_file: hbaFile, data_directory: dataDirectory };
    await writeFile(hbaFile, 'local all all trust\n', { mode: 0o644 });
    const settings = { defaults, asked: spec.settings ?? {}, places };
    await writeFile(configFile, renderSettings(settings), { mode: 0o644 });
    await writeFile(logFile, '', { mode: 0o600 });
    if (uid !== null) await chown(directory, uid, uid);
    await startPostmaster({
      dataDirectory,
      uid,
      logFile,
      program: join(build.bin, 'postgres'),
      arguments: ['-c', `config_file=${configFile}`],
    });
    await untilReady(spec);
  } catch (error) {
    await stop().catch(() => undefined);
    throw error;
  }
  const path = socketFile(directory);
  return { path, connect: (superuser, database) => connect(path, superuser, database), stop };
}

async function untilReady({ dataDirectory, uid, logFile }: ScratchSpec): Promise<void> {
  for (;;) {
    const running = await findPostmaster(dataDirectory, uid);
    if (!running) throw new ScratchServerError(logFile);
    if (running.ready) return;
    await delay(20);
  }
}

function connect(path: string, username: string, database: string): postgres.Sql {
  return postgres({
    path,
    username,
    database,
    max: 1,
    fetch_types: false,
    onnotice: () => undefined,
    // No unqualified name may refer to something that a tenant defined: this is a superuser's session.
    connection: { application_name: 'catnap', search_path: 'pg_catalog' },
  });
}

/** The server ended before it accepted sessions; its log says why. */
export class ScratchServerError extends Error {
  readonly logFile: string;
  constructor(logFile: string) {
    super(`the server ended while it started; see ${logFile}`);
    this.name = 'ScratchServerError';
    this.logFile = logFile;
  }
}
