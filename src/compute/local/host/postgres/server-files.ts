/**
 * What a server needs besides its data: configuration, a socket directory and a log, each with the right owner. A wake
 * waits for these files, and thirty trips to another thread would take four times as long as the calls themselves.
 */

import { chmodSync, chownSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { chown, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Uids } from '../../../../lib/config.ts';
import { makeFolder } from '../../../../lib/make-folder.ts';
import type { ComputeLimits } from '../../../../lib/model.ts';
import type { ComputeSpec } from '../../../interface/driver.ts';
import type { TemporaryDiskEnforcement } from '../../../interface/driver-host.ts';
import { replicationRole, replicationSecret, slotName } from '../../../interface/own-logins.ts';
import { dataDirectory, type Layout, socketFile } from '../home/layout.ts';
import { rotateLog } from '../home/records.ts';
import { dataHome } from '../home/server-data.ts';
import { type Primary, renderHba, renderServerConfig, renderSettings, sizeConfigName } from './server-config.ts';
import { logName } from './server-log.ts';

const configName = 'postgresql.conf';
const hbaName = 'pg_hba.conf';
const passwordName = 'replication.pass';
/** Above this size a log is set aside at a start. */
const rotateBytes = 1_048_576;

export interface ServerFiles {
  readonly configFile: string;
  readonly logFile: string;
}

/** Call it only while no server of the endpoint runs. */
export async function prepareServerFiles(server: {
  spec: ComputeSpec;
  enforcement: TemporaryDiskEnforcement;
  directory: string;
  uids: Uids | null;
  layout: Layout;
}): Promise<ServerFiles> {
  const { spec, enforcement, directory, uids, layout } = server;
  const configFile = join(directory, configName);
  const hbaFile = join(directory, hbaName);
  const logFile = join(directory, logName);
  await Promise.all([
    prepareSocketDirectory(layout.socketDirectory(spec.endpointId), spec.tenantUid, uids),
    spec.readOnly
      ? writePasswordFile(join(directory, passwordName), spec)
      : prepareSocketDirectory(layout.replicationDirectory(spec.branchId), spec.tenantUid, uids),
    writeServerConfig({ spec, enforcement, directory, layout }),
    writeForServer(hbaFile, renderHba(), spec.tenantUid),
    rotateLog(logFile, rotateBytes),
  ]);
  return { configFile, logFile };
}

/** Works while the server runs, too: it rereads the file on SIGHUP. */
export async function writeServerConfig(server: {
  spec: ComputeSpec;
  enforcement: TemporaryDiskEnforcement;
  directory: string;
  layout: Layout;
}): Promise<void> {
  const { spec, enforcement, directory, layout } = server;
  const facts = {
    major: spec.pgVersion,
    dataDirectory: dataDirectory(dataHome(layout, spec)),
    socketDirectory: layout.socketDirectory(spec.endpointId),
    hbaFile: join(directory, hbaName),
    label: spec.endpointId,
    replicationDirectory: spec.readOnly ? null : layout.replicationDirectory(spec.branchId),
    follows: spec.readOnly ? primaryOf(spec, directory, layout) : null,
    sessionTempBytes: enforcement === 'session' ? spec.tempDiskBytes : null,
  };
  await writeForServer(join(directory, configName), renderServerConfig(facts, spec.settings), spec.tenantUid);
}

/** Writes the settings that follow a running server's size, in their own file; returns whether they changed. */
export async function writeSizeConfig(
  directory: string,
  settings: ComputeLimits['settings'],
  tenantUid: number | null,
): Promise<boolean> {
  const path = join(directory, sizeConfigName);
  const text = renderSettings({ size: settings });
  if (readIfThere(path) === text) return false;
  await writeForServer(path, text, tenantUid);
  return true;
}

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

function primaryOf(spec: ComputeSpec, directory: string, layout: Layout): Primary {
  return {
    socketDirectory: layout.replicationDirectory(spec.branchId),
    slot: slotName(spec.endpointId),
    passwordFile: join(directory, passwordName),
  };
}

/** libpq refuses a password file that other users can read, so the server's uid owns this one. */
async function writePasswordFile(path: string, spec: ComputeSpec): Promise<void> {
  const line = `*:*:*:${replicationRole}:${replicationSecret(spec.adminSecret)}\n`;
  await rm(path, { force: true });
  await writeFile(path, line, { mode: 0o600, flag: 'wx' });
  if (spec.tenantUid !== null) await chown(path, spec.tenantUid, spec.tenantUid);
}

/** The server's uid makes its socket in it; Catnap's own processes, which have the group, may enter; others may not. */
export async function prepareSocketDirectory(
  directory: string,
  tenantUid: number | null,
  uids: Uids | null,
): Promise<void> {
  makeFolder(directory, 0o700);
  // A lock that a killed server left could name a pid that another process now has.
  rmSync(socketFile(directory), { force: true });
  rmSync(`${socketFile(directory)}.lock`, { force: true });
  if (tenantUid === null || uids === null) return;
  chownSync(directory, tenantUid, uids.service);
  chmodSync(directory, 0o2750);
}

/**
 * Readable by the server, writable only by the parent. Usually the text is that of the last start, and writing it again
 * would wait for the disk. By a rename: on a full disk the server keeps the file that it has.
 */
export async function writeForServer(path: string, text: string, tenantUid: number | null): Promise<void> {
  const isThere = readIfThere(path) === text;
  const at = isThere ? path : `${path}.new`;
  if (!isThere) writeFileSync(at, text, { mode: 0o600 });
  if (tenantUid !== null) {
    chownSync(at, 0, tenantUid);
    chmodSync(at, 0o640);
  }
  if (!isThere) renameSync(at, path);
}
