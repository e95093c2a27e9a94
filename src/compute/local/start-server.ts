/** Starts a compute's server on its data, and reloads it. The caller holds the locks of endpoint and branches. */
import { join } from 'node:path';
import type { Uids } from '../../config.ts';
import type { ComputeRef, ComputeSpec } from '../driver.ts';
import { recoveryArguments } from './backup-files.ts';
import type { Cgroups } from './cgroups.ts';
import { type DataRef, dataDirectoryOf, dataHome } from './data-home.ts';
import { findHolder } from './holder.ts';
import type { Layout } from './layout.ts';
import type { Majors } from './majors.ts';
import { startPostmaster, stopPostmaster } from './postmaster.ts';
import { readBranchRecord, writeEndpointRecord } from './records.ts';
import { prepareServerFiles, writeServerConfig, writeSizeConfig } from './server-files.ts';
import type { DiskPlace, TemporaryDiskEnforcement, TemporaryDisks } from './temporary-disks.ts';
import type { TenantDirectories } from './tenant-directories.ts';

export interface ServerParts {
  readonly layout: Layout;
  readonly uids: Uids | null;
  readonly tenants: TenantDirectories;
  readonly majors: Majors;
  readonly disks: TemporaryDisks;
  readonly cgroups: Cgroups;
}

/** `previous` names the branch that the endpoint was on before, which is mostly the same. */
export async function startServer(parts: ServerParts, spec: ComputeSpec, previous: ComputeRef): Promise<void> {
  const { layout, uids, disks } = parts;
  const data = dataDirectoryOf(layout, spec);
  await requireData(layout, spec);
  const holder = await findHolder(data, spec.tenantUid);
  if (holder && holder.endpointId !== spec.endpointId) {
    throw new Error(`branch ${spec.branchId} is in use by ${holder.endpointId ?? 'another server'}`);
  }
  const { build } = await parts.majors.ready(spec.pgVersion);
  const { generation, branchId, adminSecret, readOnly = false } = spec;
  const directory = await parts.tenants.ensureEndpoint(spec);
  await writeEndpointRecord(directory, { generation, branchId, adminSecret, readOnly });
  if (holder?.generation === generation) return;
  for (const ref of [spec, previous]) {
    const older = await findHolder(dataDirectoryOf(layout, ref), ref.tenantUid);
    if (older?.endpointId === spec.endpointId) await stopPostmaster(dataDirectoryOf(layout, ref), spec.tenantUid);
    await disks.unlink(diskPlaceOf(layout, ref));
  }
  const groupFiles = await parts.cgroups.prepare(spec.endpointId, spec.limits);
  await writeSizeConfig(directory, groupFiles === null ? {} : spec.limits.settings, spec.tenantUid);
  await withDisk(parts, spec, async (enforcement, onSpawn) => {
    const files = await prepareServerFiles({ spec, enforcement, directory, uids, layout });
    return startPostmaster({
      ...{ program: join(build.bin, 'postgres'), dataDirectory: data, uid: spec.tenantUid, logFile: files.logFile },
      groupFiles,
      arguments: [
        ...['-c', `config_file=${files.configFile}`],
        ...['-c', `catnap.endpoint=${spec.endpointId}`, '-c', `catnap.generation=${generation}`],
        ...['-c', `catnap.release=${build.name}`],
        ...(groupFiles === null ? [] : ['-c', 'catnap.limits=enforced']),
        ...(await recoveryArguments(data)),
      ],
      onSpawn,
    });
  });
  if (groupFiles !== null) parts.cgroups.holdSoon(spec.endpointId, spec.limits);
}

/** The disk for temporary files is made while the server starts; one that cannot be had is made up for by a setting. */
async function withDisk(
  { disks, layout }: ServerParts,
  spec: ComputeSpec,
  start: (enforcement: TemporaryDiskEnforcement, onSpawn: () => void) => Promise<number>,
): Promise<void> {
  const place = diskPlaceOf(layout, spec);
  const expected = await disks.prepare(place, spec.tenantUid);
  if (expected === 'session' || spec.tenantUid === null) {
    await start('session', () => undefined);
    return;
  }
  const uid = spec.tenantUid;
  let attaching: Promise<TemporaryDiskEnforcement> = Promise.resolve(expected);
  try {
    const pid = await start(expected, () => {
      attaching = disks.attach(place, uid, spec.tempDiskBytes);
    });
    if ((await attaching) === expected) return;
    await writeServerConfig({ spec, enforcement: 'session', directory: place.directory, layout });
    process.kill(pid, 'SIGHUP');
  } finally {
    // Whoever comes next must not find a disk in the making.
    await attaching;
  }
}

async function requireData(layout: Layout, spec: ComputeSpec): Promise<void> {
  const branch = await readBranchRecord(dataHome(layout, spec));
  if (!branch) throw new Error(`${spec.readOnly ? 'replica' : 'branch'} ${spec.branchId} has no data`);
  if (branch.pgVersion !== spec.pgVersion) {
    throw new Error(`branch ${spec.branchId} is of Postgres ${branch.pgVersion}, not ${spec.pgVersion}`);
  }
}

export function diskPlaceOf(layout: Layout, ref: ComputeRef & DataRef): DiskPlace {
  return { directory: layout.endpoint(ref.projectId, ref.endpointId), dataDirectory: dataDirectoryOf(layout, ref) };
}

/** Has the running server read its configuration anew. The caller holds the lock of the endpoint. */
export async function reloadServer({ layout, tenants, disks }: ServerParts, spec: ComputeSpec): Promise<void> {
  const holder = await findHolder(dataDirectoryOf(layout, spec), spec.tenantUid);
  if (holder?.endpointId !== spec.endpointId || holder.generation !== spec.generation) {
    throw new Error(`compute ${spec.endpointId} is not running`);
  }
  const directory = await tenants.ensureEndpoint(spec);
  await writeServerConfig({ spec, enforcement: await disks.inForce(directory), directory, layout });
  process.kill(holder.pid, 'SIGHUP');
}
