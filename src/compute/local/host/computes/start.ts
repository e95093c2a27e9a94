/** Starts a compute's server on its data, and reloads it. The caller holds the locks of endpoint and branches. */
import { existsSync } from 'node:fs';
import { lchown, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Uids } from '../../../../lib/config.ts';
import { notSupported } from '../../../interface/abilities.ts';
import type { ComputeRef, ComputeSpec } from '../../../interface/driver.ts';
import type { TemporaryDiskEnforcement } from '../../../interface/driver-host.ts';
import type { HostedCompute } from '../../channel/host-calls.ts';
import { recoveryArguments } from '../branches/backup-files.ts';
import type { Cgroups } from '../cgroups/compute-groups.ts';
import { diskLocationOf, type TemporaryDisks } from '../disks/temporary.ts';
import { type Layout, socketFile } from '../home/layout.ts';
import { readBranchRecord, writeEndpointRecord } from '../home/records.ts';
import { dataDirectoryOf, dataHome } from '../home/server-data.ts';
import type { TenantDirectories } from '../home/tenant-directories.ts';
import type { Networks } from '../network/networks.ts';
import type { Build } from '../postgres/builds.ts';
import { findHolder } from '../postgres/holder.ts';
import { foldersInTree } from '../postgres/machine-extensions.ts';
import type { Majors } from '../postgres/majors.ts';
import { type StartedPostmaster, startPostmaster, stopPostmaster } from '../postgres/postmaster.ts';
import { keepRelationCaches } from '../postgres/relation-caches.ts';
import { prepareServerFiles, writeServerConfig, writeSizeConfig } from '../postgres/server-files.ts';
import { inspectCompute } from './inspect.ts';
import type { ReadyServers } from './ready-servers.ts';

export interface ServerParts {
  readonly layout: Layout;
  readonly uids: Uids | null;
  readonly tenants: TenantDirectories;
  readonly majors: Majors;
  readonly disks: TemporaryDisks;
  readonly cgroups: Cgroups;
  readonly networks: Networks;
  readonly readyServers: ReadyServers;
}

/**
 * `previous` names the branch that the endpoint was on before, usually the same one. Returns null unless the server
 * already accepts connections. A client waits for each of these steps, so they run in parallel where they can.
 */
export async function startServer(
  parts: ServerParts,
  spec: ComputeSpec,
  previous: ComputeRef,
): Promise<HostedCompute | null> {
  return (await ensureServer(parts, spec, previous)) ? inspectCompute(parts.layout, spec) : null;
}

async function ensureServer(parts: ServerParts, spec: ComputeSpec, previous: ComputeRef): Promise<boolean> {
  const { layout, disks } = parts;
  const data = dataDirectoryOf(layout, spec);
  const [holder, { build }] = await Promise.all([
    findHolder(data, spec.tenantUid),
    parts.majors.ready(spec.pgVersion),
    requireData(layout, spec),
  ]);
  if (holder && holder.endpointId !== spec.endpointId) {
    throw new Error(`branch ${spec.branchId} is in use by ${holder.endpointId ?? 'another server'}`);
  }
  requirePreloaded(build, spec);
  const { generation, branchId, adminSecret, readOnly = false } = spec;
  const directory = await parts.tenants.ensureEndpoint(spec);
  await writeEndpointRecord(directory, { generation, branchId, adminSecret, readOnly });
  if (holder?.generation === generation) return holder.ready;
  if (holder) await stopPostmaster(data, spec.tenantUid);
  if (dataDirectoryOf(layout, previous) !== data) {
    const older = await findHolder(dataDirectoryOf(layout, previous), spec.tenantUid);
    if (older?.endpointId === spec.endpointId) {
      await stopPostmaster(dataDirectoryOf(layout, previous), spec.tenantUid);
    }
    await disks.unlink(diskLocationOf(layout, previous));
  }
  return (await startOnData(parts, spec, { directory, data, build })).ready;
}

/** Call it while no server of the endpoint runs, and none on its data. */
async function startOnData(
  parts: ServerParts,
  spec: ComputeSpec,
  { directory, data, build }: { directory: string; data: string; build: Build },
): Promise<StartedPostmaster> {
  const { layout, uids, disks, cgroups, networks } = parts;
  const usual = spec.tenantUid === null ? 'session' : await disks.detect();
  const [network, groupFiles, disk, files, recovery, caches] = await Promise.all([
    networks.open(spec.network ?? 'none'),
    prepareGroup(parts, spec, directory),
    disks.prepare(diskLocationOf(layout, spec), spec.tenantUid, spec.tempDiskBytes),
    prepareServerFiles({ spec, enforcement: usual, directory, uids, layout }),
    recoveryArguments(data),
    spec.readOnly || spec.frozen ? null : keepRelationCaches(dataHome(layout, spec), build.name),
    spec.frozen ? freeze(data, spec.tenantUid) : undefined,
  ]);
  const { enforcement } = disk;
  if (enforcement !== usual) await writeServerConfig({ spec, enforcement, directory, layout });
  // On the command line, which `findHolder` reads: the process itself records what it was started as.
  const identity = {
    config_file: files.configFile,
    'catnap.endpoint': spec.endpointId,
    'catnap.generation': spec.generation,
    'catnap.release': build.name,
    ...(groupFiles !== null && { 'catnap.limits': 'enforced' }),
  };
  const start = (onSpawn: () => void) =>
    startPostmaster({
      program: join(build.bin, 'postgres'),
      dataDirectory: data,
      uid: spec.tenantUid,
      logFile: files.logFile,
      groupFiles,
      network,
      arguments: [...Object.entries(identity).flatMap(([name, value]) => ['-c', `${name}=${value}`]), ...recovery],
      onSpawn: () => {
        onSpawn();
        caches?.verify();
      },
      onReady: (sinceMs) => {
        caches?.putBack(sinceMs);
        const { endpointId, generation } = spec;
        const path = socketFile(layout.socketDirectory(endpointId));
        parts.readyServers.note({ endpointId, generation, address: { kind: 'unix', path } });
      },
    });
  const uid = enforcement === 'session' || disk.attached ? null : spec.tenantUid;
  const started = await (uid === null ? start(() => undefined) : startWithDisk(parts, spec, uid, start)).finally(() => {
    network?.close();
    caches?.close();
  });
  if (groupFiles !== null) cgroups.holdSoon(spec.endpointId, spec.limits);
  return started;
}

/**
 * A standby that follows nobody: it replays the shutdown and then waits for log that never comes. In recovery nothing
 * can be written, which no session can change; `default_transaction_read_only` would only be a default.
 */
async function freeze(data: string, owner: number | null): Promise<void> {
  const path = join(data, 'standby.signal');
  await rm(path, { force: true });
  await writeFile(path, '', { mode: 0o600, flag: 'wx' });
  if (owner !== null) await lchown(path, owner, owner);
}

async function prepareGroup({ cgroups }: ServerParts, spec: ComputeSpec, directory: string) {
  const groupFiles = await cgroups.prepare(spec.endpointId, spec.limits);
  await writeSizeConfig(directory, groupFiles === null ? {} : spec.limits.settings, spec.tenantUid);
  return groupFiles;
}

/** A disk that was not ready is made while the server starts; if it cannot be made, a setting replaces it. */
async function startWithDisk(
  { disks, layout }: ServerParts,
  spec: ComputeSpec,
  uid: number,
  start: (onSpawn: () => void) => Promise<StartedPostmaster>,
): Promise<StartedPostmaster> {
  const location = diskLocationOf(layout, spec);
  let attaching: Promise<TemporaryDiskEnforcement> = Promise.resolve('disk');
  try {
    const started = await start(() => {
      attaching = disks.attach(location, uid, spec.tempDiskBytes);
    });
    if ((await attaching) === 'disk') return started;
    await writeServerConfig({ spec, enforcement: 'session', directory: location.directory, layout });
    process.kill(started.pid, 'SIGHUP');
    return started;
  } finally {
    // The next call for this endpoint must not find a half-made disk.
    await attaching;
  }
}

/** A library whose package has gone would end the server with the words of the loader, at every attempt. */
function requirePreloaded({ base, bin }: Build, { settings, pgVersion }: ComputeSpec): void {
  // Where given binaries have their libraries, only they know.
  if (base === null) return;
  const { libraries } = foldersInTree(dirname(bin));
  const names = (settings.shared_preload_libraries ?? '').split(',').filter((name) => name !== '');
  const missing = names.find((name) => !existsSync(join(libraries, `${name}.so`)));
  if (missing === undefined) return;
  throw notSupported(
    `the library ${missing} for Postgres ${pgVersion} is not on this machine: install its package again and restart ` +
      'Catnap, or take it out of settings.preload_libraries',
  );
}

async function requireData(layout: Layout, spec: ComputeSpec): Promise<void> {
  const branch = await readBranchRecord(dataHome(layout, spec));
  if (!branch) throw new Error(`${spec.readOnly ? 'replica' : 'branch'} ${spec.branchId} has no data`);
  if (branch.pgVersion !== spec.pgVersion) {
    throw new Error(`branch ${spec.branchId} is of Postgres ${branch.pgVersion}, not ${spec.pgVersion}`);
  }
}

/** Makes the running server reload its configuration. The caller holds the endpoint's lock. */
export async function reloadServer({ layout, tenants, disks }: ServerParts, spec: ComputeSpec): Promise<void> {
  const holder = await findHolder(dataDirectoryOf(layout, spec), spec.tenantUid);
  if (holder?.endpointId !== spec.endpointId || holder.generation !== spec.generation) {
    throw new Error(`compute ${spec.endpointId} is not running`);
  }
  const directory = await tenants.ensureEndpoint(spec);
  await writeServerConfig({ spec, enforcement: await disks.inForce(directory), directory, layout });
  process.kill(holder.pid, 'SIGHUP');
}
