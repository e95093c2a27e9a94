/**
 * The double's storage and its Postgres: volumes are folders, a snapshot is a copy of one in a single moment, and the
 * server of a pod is a real Postgres on the pod's own loopback address. Without the operator's instance manager, TLS,
 * log archive and image.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chown, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import type { Build } from '../../../src/compute/local/host/postgres/builds.ts';
import { withNewCluster } from '../../../src/compute/local/host/postgres/cluster.ts';
import {
  findPostmaster,
  startPostmaster,
  stopPostmaster,
} from '../../../src/compute/local/host/postgres/postmaster.ts';
import { runProgram } from '../../../src/lib/run-program.ts';
import { buildVerifier } from '../../../src/lib/scram-verifier.ts';
import { eventually } from '../eventually.ts';
import { doublePort } from './cluster-status.ts';

export interface ServerSettings {
  readonly address: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly libraries: readonly string[];
  /** Rules of the Cluster for logins, which come before the operator's last one. */
  readonly rules?: readonly string[];
  /** Of a replica: where its primary listens, or would; null while that has no pod. */
  readonly follows?: string | null;
}

export interface NewDatabase {
  readonly database: string;
  readonly owner: string;
  readonly password: string;
  readonly statements: readonly string[];
}

/** As the operator writes it, except that its login for replicas needs no certificate here: there is no TLS. */
const replication = 'host replication streaming_replica all trust';
const hbaOf = ({ rules = [] }: ServerSettings) =>
  [replication, ...rules, 'host all all all scram-sha-256', ''].join('\n');
/** Those of the operator's replicas and of its metrics, which every server has, whether anybody uses them or not. */
const operatorsRoles = [
  'CREATE ROLE streaming_replica LOGIN REPLICATION',
  'CREATE ROLE cnpg_metrics_exporter LOGIN',
  'GRANT pg_monitor TO cnpg_metrics_exporter',
];
/** Nothing of a test need outlive the machine; everything else is the server's own. */
const hasty = { fsync: 'off', shared_buffers: '16MB' };

export class Volumes {
  readonly #folder: string;
  readonly #builds: (major: number) => Promise<Build>;
  readonly #uid: number | null;

  constructor(folder: string, builds: (major: number) => Promise<Build>, uid: number | null) {
    this.#folder = folder;
    this.#builds = builds;
    this.#uid = uid;
  }

  async prepare(): Promise<void> {
    for (const name of ['work', 'made', 'volumes', 'snapshots'])
      await mkdir(join(this.#folder, name), { recursive: true });
  }

  async list(): Promise<string[]> {
    return [...(await readdir(join(this.#folder, 'volumes'))), ...(await readdir(join(this.#folder, 'snapshots')))];
  }

  /** As `initdb` makes it. The first of its kind is kept, and later ones are copies of that. */
  async initialise(volume: string, major: number, wanted: NewDatabase): Promise<void> {
    const { password, ...alike } = wanted;
    const { database, owner, statements } = alike;
    const key = createHash('sha256')
      .update(JSON.stringify([major, alike]))
      .digest('hex');
    const kept = join(this.#folder, 'made', key);
    const all = [
      ...operatorsRoles,
      `CREATE ROLE ${owner} LOGIN`,
      `CREATE DATABASE ${database} OWNER ${owner} TEMPLATE template0`,
      ...statements,
    ];
    if (!existsSync(kept)) {
      const spec = { build: await this.#builds(major), superuser: 'postgres', uid: this.#uid, statements: all };
      await withNewCluster(spec, join(this.#folder, 'work'), (made) => this.#place(made, kept));
    }
    await this.#copy(kept, this.#volume(volume));
    await this.#setPassword(volume, major, wanted);
  }

  /** What a recovery does to a copy: its owner gets the password of its own Secret. */
  async recover(volume: string, snapshot: string, wanted: Pick<NewDatabase, 'owner' | 'password'>): Promise<void> {
    const target = this.#volume(volume);
    await this.#restore(volume, snapshot);
    const major = Number(await readFile(join(target, 'pgdata', 'PG_VERSION'), 'utf8'));
    await this.#setPassword(volume, major, wanted);
  }

  /** A copy that is to follow its source keeps all that it has. */
  async recoverAsStandby(volume: string, snapshot: string): Promise<void> {
    await this.#restore(volume, snapshot);
    await this.#write(join(this.#volume(volume), 'pgdata', 'standby.signal'), '');
  }

  /** Without what the operator leaves out of every copy, the source's slots among it. */
  async #restore(volume: string, snapshot: string): Promise<void> {
    const target = this.#volume(volume);
    await this.#copy(this.#snapshot(snapshot), target);
    await rm(join(target, 'pgdata', 'postmaster.pid'), { force: true });
    const slots = join(target, 'pgdata', 'pg_replslot');
    for (const name of await readdir(slots)) await rm(join(slots, name), { recursive: true });
  }

  /** In a server that nobody else can reach; one that was copied while it ran recovers from its log first. */
  async #setPassword(volume: string, major: number, { owner, password }: Pick<NewDatabase, 'owner' | 'password'>) {
    const directory = join(this.#volume(volume), 'pgdata');
    const alone = { listen_addresses: '', unix_socket_directories: directory };
    await this.start(volume, major, { address: '', parameters: alone, libraries: [] }, 'local all all trust\n');
    const sql = postgres({
      path: join(directory, `.s.PGSQL.${doublePort}`),
      username: 'postgres',
      database: 'postgres',
      max: 1,
    });
    try {
      await eventually(() => sql.unsafe(`ALTER ROLE ${owner} PASSWORD '${buildVerifier(password)}'`));
    } finally {
      await sql.end({ timeout: 1 });
      await this.stop(volume);
    }
  }

  /** Everything stands still meanwhile: the copy is what a power cut at that moment would leave. */
  async snapshot(volume: string, name: string): Promise<void> {
    const running = await this.find(volume);
    const stopped: number[] = [];
    try {
      if (running !== null) await standStill(running, stopped);
      await this.#copy(this.#volume(volume), this.#snapshot(name));
    } finally {
      for (const pid of stopped) signalIfThere(pid, 'SIGCONT');
    }
  }

  async start(volume: string, major: number, settings: ServerSettings, hba = hbaOf(settings)): Promise<number> {
    await this.configure(volume, settings, hba);
    const { bin } = await this.#builds(major);
    const dataDirectory = join(this.#volume(volume), 'pgdata');
    const logFile = join(this.#volume(volume), 'log');
    const program = join(bin, 'postgres');
    const started = await startPostmaster({ program, dataDirectory, arguments: [], logFile, uid: this.#uid });
    return started.pid;
  }

  /** For a server that runs: reads it at once, except what needs a restart. */
  async configure(volume: string, settings: ServerSettings, hba = hbaOf(settings)): Promise<void> {
    const { address, parameters, libraries, follows } = settings;
    const directory = join(this.#volume(volume), 'pgdata');
    const fixed = { listen_addresses: address, port: String(doublePort), unix_socket_directories: '', ssl: 'off' };
    const all = {
      ...hasty,
      ...fixed,
      ...parameters,
      shared_preload_libraries: libraries.join(','),
      wal_level: 'logical',
      ...(follows && { primary_conninfo: `host=${follows} port=${doublePort} user=streaming_replica` }),
    };
    const lines = Object.entries(all).map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'`);
    await this.#write(join(directory, 'postgresql.conf'), `${lines.join('\n')}\n`);
    await this.#write(join(directory, 'pg_hba.conf'), hba);
    const pid = await this.find(volume);
    if (pid !== null) process.kill(pid, 'SIGHUP');
  }

  stop(volume: string): Promise<void> {
    return stopPostmaster(join(this.#volume(volume), 'pgdata'), this.#uid);
  }

  /** The server's pid, or null when none runs. */
  async find(volume: string): Promise<number | null> {
    return (await findPostmaster(join(this.#volume(volume), 'pgdata'), this.#uid))?.pid ?? null;
  }

  removeVolume(volume: string): Promise<void> {
    return rm(this.#volume(volume), { recursive: true, force: true });
  }

  removeSnapshot(name: string): Promise<void> {
    return rm(this.#snapshot(name), { recursive: true, force: true });
  }

  readonly #volume = (name: string) => join(this.#folder, 'volumes', name);
  readonly #snapshot = (name: string) => join(this.#folder, 'snapshots', name);

  async #place(made: string, target: string): Promise<void> {
    await mkdir(target, { recursive: true, mode: 0o755 });
    await rename(made, join(target, 'pgdata'));
  }

  async #copy(from: string, to: string): Promise<void> {
    await rm(to, { recursive: true, force: true });
    await runProgram('cp', ['-a', from, to]);
  }

  async #write(path: string, text: string): Promise<void> {
    await writeFile(path, text);
    if (this.#uid !== null) await chown(path, this.#uid, this.#uid);
  }
}

/** The postmaster first, so that no process begins while the others are stopped. */
async function standStill(postmaster: number, stopped: number[]): Promise<void> {
  const stop = (pid: number) => {
    if (signalIfThere(pid, 'SIGSTOP')) stopped.unshift(pid);
  };
  stop(postmaster);
  // All of them: asked for the children of one, `ps` fails where there are none, as at the end of a shutdown.
  const lines = (await runProgram('ps', ['-A', '-o', 'pid=,ppid='])).trim().split('\n');
  for (const line of lines) {
    const [pid, parent] = line.trim().split(/\s+/).map(Number);
    if (pid !== undefined && parent === postmaster) stop(pid);
  }
}

/** False for a process that has ended: a server may be on its way to sleep while its volume is copied. */
function signalIfThere(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}
