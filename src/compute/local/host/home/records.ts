/** The small files that the host keeps beside a branch and an endpoint. Tenants can neither read nor change them. */
import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { BranchId } from '../../../../lib/ids.ts';
import type { BranchReceipt } from '../../../interface/driver.ts';

export interface BranchRecord {
  readonly pgVersion: number;
  readonly receipt: BranchReceipt;
  /** Missing where an older version made the directory. */
  readonly past?: BranchPast;
}

/** Where the past of a data directory is kept. It moves along when the directory becomes that of another branch. */
export interface BranchPast {
  readonly historyId: string;
  readonly madeAt: string;
  /** The build whose template this is a copy of; null for a copy of another branch. */
  readonly template: string | null;
  /**
   * What the data was copied from; missing where it has no past before itself, or an older version made it. Records on
   * disks have this name for it.
   */
  readonly parent?: SourcePast;
}

/** The history that the data continues: with it, every moment since the copy can be given without copying anything. */
export interface SourcePast {
  readonly branchId: BranchId;
  readonly historyId: string;
  readonly timeline: number;
  /** The log up to here is the source's. */
  readonly until: string;
}

export interface EndpointRecord {
  /** The newest that was seen; older calls are refused. */
  readonly generation: number;
  readonly branchId: BranchId;
  /** Kept here, not passed by each caller, so that a restarted Catnap can log in to the servers that it adopts. */
  readonly adminSecret: string;
  /** A read replica, whose data is in the endpoint's directory. */
  readonly readOnly?: boolean;
}

const branchJson = 'branch.json';
const firstSecretFile = 'first-secret';

export const readBranchRecord = (directory: string) => readJson<BranchRecord>(join(directory, branchJson));
export const writeBranchRecord = (directory: string, record: BranchRecord) =>
  writeJson(join(directory, branchJson), record);

export const readEndpointRecord = (directory: string) => readJson<EndpointRecord>(join(directory, 'state.json'));
export const writeEndpointRecord = (directory: string, record: EndpointRecord) =>
  writeJson(join(directory, 'state.json'), record);

/** What is written beside the data of a new branch. */
export const recordFiles = (branchDirectory: string) =>
  [branchJson, firstSecretFile].map((name) => join(branchDirectory, name)).filter((path) => existsSync(path));

/** The template's secret: kept for as long as the branch's server may still need it. */
export async function readFirstSecret(branchDirectory: string): Promise<string | null> {
  return readText(join(branchDirectory, firstSecretFile));
}

export async function writeFirstSecret(branchDirectory: string, secret: string): Promise<void> {
  writeFileSync(join(branchDirectory, firstSecretFile), secret, { mode: 0o600 });
}

export async function removeFirstSecret(branchDirectory: string): Promise<void> {
  await rm(join(branchDirectory, firstSecretFile), { force: true });
}

/** At a start, a log that has grown large is set aside; at most two logs exist. */
export async function rotateLog(logFile: string, maxBytes: number): Promise<void> {
  const size = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0;
  if (size > maxBytes) await rename(logFile, `${logFile}.1`);
}

async function readJson<T>(path: string): Promise<T | null> {
  const text = await readText(path);
  return text === null ? null : (JSON.parse(text) as T);
}

async function readText(path: string): Promise<string | null> {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
}

/** By a rename, so that a reader never sees half of the file. Synchronous: four trips to another thread take longer. */
async function writeJson(path: string, value: unknown): Promise<void> {
  writeFileSync(`${path}.new`, JSON.stringify(value), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}
