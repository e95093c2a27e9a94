/**
 * Which Catnap has used a data home: `release.json` in it names the program and the versions of its schemas, and those
 * before. By it an older program refuses a newer home before it touches anything, and an upgrade can be undone.
 */
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { renameDurably } from '../../compute/local/host/copy/tree.ts';
import type { SchemaVersions } from '../../db/migrate.ts';

export interface Release {
  /** Null for a program that has left no record. */
  readonly version: string | null;
  readonly commit: string | null;
  readonly schemas: SchemaVersions;
}

export interface ReleaseRecord extends Release {
  /** When this program was first started on the home. */
  readonly since: string;
  /** The programs before it, the latest first. */
  readonly earlier: readonly Release[];
}

/** Enough to see where an installation comes from; nobody goes back further. */
const earlierMax = 10;

export const releaseRecordPath = (home: string) => join(home, 'release.json');

export async function readReleaseRecord(home: string): Promise<ReleaseRecord | null> {
  const path = releaseRecordPath(home);
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (text === null) return null;
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new Error(`${path} is damaged: remove it, and Catnap writes another one`, { cause });
  }
}

/** What a person is told of a program. */
export function releaseName({ version, commit }: Pick<Release, 'version' | 'commit'>): string {
  if (version === null) return 'an earlier Catnap';
  return commit === null ? `Catnap ${version}` : `Catnap ${version} (${commit})`;
}

/** Throws where a newer program has changed the system database. */
export async function requireNoNewerRelease(home: string, program: Release): Promise<void> {
  const record = await readReleaseRecord(home);
  if (record === null || !isNewer(record.schemas, program.schemas)) return;
  throw new Error(
    `the data home ${home} was last used by ${releaseName(record)}, which is newer than this ${releaseName(program)}: ` +
      'start the newer one, or go back with its `catnap upgrade undo`',
  );
}

function isNewer(schemas: SchemaVersions, known: SchemaVersions): boolean {
  return Object.entries(schemas).some(([name, version]) => version > (known[name] ?? 0));
}

/** `before` are the schemas that the program has found; null for a new database. */
export async function recordRelease(home: string, program: Release, before: SchemaVersions | null): Promise<void> {
  const record = await readReleaseRecord(home);
  if (record !== null && isSame(record, program)) return;
  // One that had the same schema and left no record is of no use to anybody.
  const isUnknown = record === null && before !== null && !isSameSchema(before, program.schemas);
  const last = isUnknown ? { version: null, commit: null, schemas: before } : record;
  const others = (record?.earlier ?? []).filter((one) => !isSame(one, program));
  await writeRecord(home, {
    ...program,
    since: new Date().toISOString(),
    earlier: [...(last === null ? [] : [plain(last)]), ...others].slice(0, earlierMax),
  });
}

/** After an undo: the home is that of the earlier program again. */
export async function recordUndo(home: string, record: ReleaseRecord, target: Release): Promise<void> {
  const earlier = record.earlier.slice(record.earlier.indexOf(target) + 1);
  await writeRecord(home, { ...target, since: new Date().toISOString(), earlier });
}

function plain({ version, commit, schemas }: Release): Release {
  return { version, commit, schemas };
}

function isSame(one: Release, other: Release): boolean {
  return one.version === other.version && one.commit === other.commit && isSameSchema(one.schemas, other.schemas);
}

function isSameSchema(one: SchemaVersions, other: SchemaVersions): boolean {
  return [...Object.keys(one), ...Object.keys(other)].every((name) => one[name] === other[name]);
}

async function writeRecord(home: string, record: ReleaseRecord): Promise<void> {
  const path = releaseRecordPath(home);
  const fresh = `${path}.${process.pid}`;
  await writeFile(fresh, `${JSON.stringify(record, null, 2)}\n`, { flush: true });
  await chmod(fresh, 0o644);
  await renameDurably(fresh, path);
}
