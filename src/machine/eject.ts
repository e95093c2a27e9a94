/**
 * `catnap eject`, its part on this machine: a copy of the data of a branch whose compute has been suspended, with a
 * configuration of its own, so that any Postgres of its major runs it without Catnap. Roles keep their passwords;
 * Catnap's own logins end, and a superuser for the new owner takes their place.
 */
import { existsSync } from 'node:fs';
import { chown, lstat, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { adminRole, replicationRole } from '../compute/interface/own-logins.ts';
import { isTransient } from '../compute/local/host/branches/clone.ts';
import { copyTree, syncTree } from '../compute/local/host/copy/tree.ts';
import { readStorageRecord, storagePaths } from '../compute/local/host/disks/storage-image.ts';
import { createLayout, dataDirectory, type Layout } from '../compute/local/host/home/layout.ts';
import { ensureBuild } from '../compute/local/host/postgres/builds.ts';
import { readControlFile } from '../compute/local/host/postgres/control-file.ts';
import { findHolder } from '../compute/local/host/postgres/holder.ts';
import type { Config } from '../lib/config.ts';
import { newSecret } from '../lib/ids.ts';
import { runProgram } from '../lib/run-program.ts';
import { buildVerifier } from '../lib/scram-verifier.ts';

export interface EjectPlace {
  readonly projectId: string;
  readonly branchId: string;
  /** The new data directory. */
  readonly folder: string;
  /** Whose it becomes; undefined for the user who asks. */
  readonly account: string | undefined;
}

export interface EjectRequest extends EjectPlace {
  /** The compute that was suspended, for its settings. */
  readonly endpointId: string;
  readonly pgVersion: number;
}

export interface Ejected {
  readonly folder: string;
  /** A program that can run it. */
  readonly program: string;
  readonly superuser: string;
  readonly password: string;
  /** Whose the folder is, where that is not the user who asked. */
  readonly account: string | null;
}

interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

const superuser = 'ejected_admin';
/** Good for a small server that naps, and not for one that stays. */
const ofNappers = ['shared_buffers', 'max_logical_replication_workers', 'log_checkpoints'];

/** Throws a sentence if it cannot be done here. Changes nothing. */
export async function checkEject(config: Config, { projectId, branchId, folder, account }: EjectPlace): Promise<void> {
  if (config.driver !== 'local') throw new Error('eject works where computes are processes of this machine alone');
  await accountFor(account);
  const target = resolve(folder);
  const there = await readdir(target).catch((error) => {
    if (error.code === 'ENOENT') return [];
    throw new Error(`${target} cannot be used (${error.code}): name a folder that is new or empty`);
  });
  if (there.length > 0) throw new Error(`${target} is not empty: name a folder that is new or empty`);
  const layout = await layoutOf(config);
  const data = dataDirectory(layout.branch(projectId, branchId));
  if (existsSync(data)) return;
  throw new Error(
    `the data of this branch is not in ${config.home}: run eject on the machine of its Catnap, as the user that runs it`,
  );
}

/** The compute must be suspended; nothing of the branch is changed. */
export async function eject(config: Config, request: EjectRequest): Promise<Ejected> {
  const { projectId, branchId, endpointId, pgVersion } = request;
  const account = await accountFor(request.account);
  const layout = await layoutOf(config);
  const source = dataDirectory(layout.branch(projectId, branchId));
  const sourceOwner = config.uids === null ? null : (await lstat(source)).uid;
  if ((await findHolder(source, sourceOwner)) !== null) throw new Error('a server still runs on the data');
  if (!(await readControlFile(source)).shutDown) throw new Error('the data was not shut down in order');
  const { bin } = await ensureBuild(pgVersion, config, layout);
  const folder = resolve(request.folder);
  const password = newSecret();
  try {
    await rm(folder, { recursive: true, force: true });
    await mkdir(dirname(folder), { recursive: true });
    await copyTree(source, folder, { owner: account?.uid, sourceOwner, skip: (path) => isTransient(path) });
    await configure(folder, await settingsOf(layout, projectId, endpointId), account);
    await changeLogins(join(bin, 'postgres'), folder, password, account);
    await syncTree(folder);
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
  return { folder, program: join(bin, 'postgres'), superuser, password, account: account?.name ?? null };
}

async function layoutOf({ home }: Config): Promise<Layout> {
  return createLayout(home, (await readStorageRecord(home)) === null ? home : storagePaths(home).point);
}

/** Postgres does not run as root, so root must say whose the data becomes. Null for the user who asks. */
async function accountFor(name: string | undefined): Promise<Account | null> {
  const isRoot = process.getuid?.() === 0;
  if (name === undefined) {
    if (isRoot) throw new Error('Postgres does not run as root: say with --user whose the data becomes');
    return null;
  }
  if (!isRoot) throw new Error('--user needs root: only root can give files away');
  const lines = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'));
  const found = lines.find(([account]) => account === name);
  const [uid, gid] = [Number(found?.[2]), Number(found?.[3])];
  if (found === undefined || uid === 0) throw new Error(`--user ${name} must be an account of this machine, not root`);
  return { name, uid, gid };
}

/** What the compute was given: `name = 'value'` lines, before the part that is about Catnap. */
async function settingsOf(layout: Layout, projectId: string, endpointId: string): Promise<readonly string[]> {
  const text = await readFile(join(layout.endpoint(projectId, endpointId), 'postgresql.conf'), 'utf8');
  const [asked = ''] = text.split(/^include_if_exists /m);
  return asked.split('\n').filter((line) => {
    const name = /^([\w.]+) = /.exec(line)?.[1];
    return name !== undefined && !ofNappers.includes(name);
  });
}

async function configure(folder: string, settings: readonly string[], account: Account | null): Promise<void> {
  const config = [
    '# Written by catnap eject.',
    "listen_addresses = 'localhost'",
    'port = 5432',
    "unix_socket_directories = '/tmp'",
    "shared_buffers = '128MB'",
    '',
    '# What its compute had.',
    ...settings,
  ];
  const logins = ['local all all', 'host all all 127.0.0.1/32', 'host all all ::1/128'];
  const replication = logins.map((line) => line.replace(' all', ' replication'));
  const rules = [...logins, ...replication].map((line) => `${line} scram-sha-256`);
  const files = {
    'postgresql.conf': config,
    'postgresql.auto.conf': [],
    'pg_hba.conf': rules,
    'pg_ident.conf': [],
  };
  for (const [name, lines] of Object.entries(files)) {
    const path = join(folder, name);
    await writeFile(path, `${lines.join('\n')}\n`, { mode: 0o600 });
    if (account !== null) await chown(path, account.uid, account.gid);
  }
}

/** In single-user mode, where nobody has to log in. The password is not among the arguments, and is not stored. */
async function changeLogins(program: string, folder: string, password: string, account: Account | null): Promise<void> {
  const statements = [
    `CREATE ROLE ${superuser} SUPERUSER LOGIN PASSWORD '${buildVerifier(password)}'`,
    `ALTER ROLE ${adminRole} NOLOGIN PASSWORD NULL`,
    `ALTER ROLE ${replicationRole} NOLOGIN PASSWORD NULL`,
  ];
  const input = statements.map((statement) => `${statement};\n\n`).join('');
  const owner = account === null ? {} : { uid: account.uid, gid: account.gid };
  await runProgram(program, ['--single', '-j', '-D', folder, '-c', 'exit_on_error=on', 'postgres'], {
    ...owner,
    input,
  });
}
