/**
 * A server on a branch's data that only Catnap's own login can reach, for work that must be done before the branch is
 * visible. It belongs to no endpoint. A server left running by a killed Catnap is stopped by the next call, or by the
 * branch's removal.
 */

import { chmod, chown, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Uids } from '../../../../lib/config.ts';
import type { KeyedLock } from '../../../../lib/keyed-lock.ts';
import type { KeptFiles } from '../../../interface/driver.ts';
import { adminRole } from '../../../interface/own-logins.ts';
import type { PrivateServer } from '../../channel/host-calls.ts';
import { syncTree } from '../copy/tree.ts';
import { dataDirectory, type Layout, socketFile } from '../home/layout.ts';
import { branchLock } from '../home/lock-names.ts';
import { readBranchRecord, readFirstSecret, writeBranchRecord } from '../home/records.ts';
import { discard, type TenantDirectories } from '../home/tenant-directories.ts';
import type { Networks } from '../network/networks.ts';
import { readControlFile } from '../postgres/control-file.ts';
import type { Majors } from '../postgres/majors.ts';
import { startPostmaster, stopPostmaster } from '../postgres/postmaster.ts';
import { renderServerConfig } from '../postgres/server-config.ts';
import { prepareSocketDirectory, writeForServer } from '../postgres/server-files.ts';
import { isSegment, segmentsOf } from '../postgres/wal-segments.ts';
import { recoveryArguments } from './backup-files.ts';

export interface PrivateServerParts {
  readonly layout: Layout;
  readonly tenants: TenantDirectories;
  readonly locks: KeyedLock;
  readonly majors: Majors;
  readonly uids: Uids | null;
  readonly networks: Networks;
}

/** No WAL file is recycled: it would keep what it held before. */
const common = {
  autovacuum: 'off',
  max_connections: '10',
  wal_recycle: 'off',
  track_activities: 'off',
  shared_buffers: '64MB',
};
/** The two are multiplied: room for many locks of many transactions at once would be gigabytes of shared memory. */
const settingsFor = {
  /** Room for a lock on every table, index and sequence of a large schema. */
  work: { ...common, max_locks_per_transaction: '8192', max_prepared_transactions: '64' },
  /** Room for as many prepared transactions as a source may have left open. */
  recovery: { ...common, max_locks_per_transaction: '64', max_prepared_transactions: '1000' },
};

/** Catnap's superuser enters tenants' databases here, so nothing may fire. Before 17 there were none for logins. */
const withoutEventTriggers = (major: number) => (major >= 17 ? { event_triggers: 'off' } : {});

/** Returns its socket path; null for a branch that still has the template's secret: nothing was written to it. */
export async function openPrivateServer(parts: PrivateServerParts, ref: PrivateServer): Promise<string | null> {
  const { layout, tenants, locks } = parts;
  await tenants.check(ref);
  return locks.exclusive(branchLock(ref), async () => {
    const home = layout.branch(ref.projectId, ref.branchId);
    if ((await readBranchRecord(home))?.pgVersion !== ref.pgVersion)
      throw new Error(`branch ${ref.branchId} has no data`);
    if ((await readFirstSecret(home)) !== null) return null;
    if (ref.purpose === 'empty') await forgetSource(home);
    return startPrivateServer(parts, { ...ref, home, settings: 'work', arguments: [] });
  });
}

/** What is taken out of a copy must not be found in a past that it shares with its source. */
async function forgetSource(home: string): Promise<void> {
  const record = await readBranchRecord(home);
  if (!record?.past?.parent) return;
  const { parent: _, ...past } = record.past;
  await writeBranchRecord(home, { ...record, past });
}

export interface PrivateStart extends Omit<PrivateServer, 'purpose'> {
  /** The directory that holds `pgdata`. */
  readonly home: string;
  readonly settings: keyof typeof settingsFor;
  /** For this one start. */
  readonly arguments: readonly string[];
}

/** The caller holds the branch's lock. One that still runs is stopped first. */
export async function startPrivateServer(parts: PrivateServerParts, start: PrivateStart): Promise<string> {
  const { layout, majors, uids, networks } = parts;
  const { home, tenantUid, branchId, pgVersion } = start;
  const data = dataDirectory(home);
  await stopPostmaster(data, tenantUid);
  const files = join(home, 'private');
  await mkdir(files, { recursive: true, mode: 0o700 });
  if (tenantUid !== null) {
    await chown(files, 0, tenantUid);
    await chmod(files, 0o710);
  }
  const socketDirectory = layout.replicationDirectory(branchId);
  await prepareSocketDirectory(socketDirectory, tenantUid, uids);
  const [configFile, hbaFile] = [join(files, 'postgresql.conf'), join(files, 'pg_hba.conf')];
  const facts = {
    major: pgVersion,
    dataDirectory: data,
    socketDirectory,
    hbaFile,
    label: branchId,
    sessionTempBytes: null,
    replicationDirectory: null,
    follows: null,
  };
  await writeForServer(
    configFile,
    renderServerConfig(facts, { ...settingsFor[start.settings], ...withoutEventTriggers(pgVersion) }),
    tenantUid,
  );
  await writeForServer(hbaFile, `local all ${adminRole} scram-sha-256\nlocal all all reject\n`, tenantUid);
  const { build } = await majors.ready(pgVersion);
  await startPostmaster({
    program: join(build.bin, 'postgres'),
    dataDirectory: data,
    uid: tenantUid,
    network: await networks.open('none'),
    logFile: join(files, 'server.log'),
    arguments: ['-c', `config_file=${configFile}`, ...(await recoveryArguments(data)), ...start.arguments],
  });
  return socketFile(socketDirectory);
}

/** Stops it. Of data that was emptied, whatever may hold old contents goes: log, statistics, files of no table. */
export async function closePrivateServer(
  { layout, tenants, locks }: PrivateServerParts,
  ref: PrivateServer,
  kept: KeptFiles | null,
): Promise<void> {
  await tenants.check(ref);
  await locks.exclusive(branchLock(ref), async () => {
    const home = layout.branch(ref.projectId, ref.branchId);
    const data = dataDirectory(home);
    await stopPostmaster(data, ref.tenantUid);
    if (ref.purpose === 'empty') {
      await clearOldLog(data);
      await removeFrom(join(data, 'pg_stat'), () => true);
    }
    if (kept !== null) await removeStrayFiles(join(data, 'base'), kept);
    await rm(join(home, 'private'), { recursive: true, force: true });
    await discard(layout.replicationDirectory(ref.branchId), layout);
    await syncTree(home);
  });
}

/** Removes the log before `from` that a server, shut down in order, does not need for its next start. */
export async function clearOldLog(data: string, from: bigint | null = null): Promise<void> {
  const { shutDown, timeline, redo, checkpoint } = await readControlFile(data);
  if (!shutDown) throw new Error(`the server on ${data} was not shut down cleanly`);
  const needed = segmentsOf(timeline, from !== null && from < redo ? from : redo, checkpoint);
  await removeFrom(join(data, 'pg_wal'), (name) => isSegment(name.slice(0, 24)) && !needed.has(name));
}

/** A transaction that was open in the source when it was copied leaves files that are in no catalog. */
async function removeStrayFiles(base: string, kept: KeptFiles): Promise<void> {
  const databases = new Map(kept.map(({ database, filenodes }) => [String(database), filenodes]));
  await removeFrom(base, (name) => /^\d+$/.test(name) && !databases.has(name));
  for (const [name, filenodes] of databases) {
    if (filenodes === null) continue;
    const known = new Set(filenodes.map(String));
    const isStray = (file: string) => /^t?\d/.test(file) && !known.has(/^\d+/.exec(file)?.[0] ?? '');
    await removeFrom(join(base, name), isStray);
  }
}

async function removeFrom(folder: string, isUnwanted: (name: string) => boolean): Promise<void> {
  for (const name of (await readdir(folder)).filter(isUnwanted)) {
    await rm(join(folder, name), { recursive: true, force: true });
  }
}
