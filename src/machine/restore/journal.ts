/**
 * A restore that is under way in a data home. The file is there from the first change until the last: a restore that
 * was cut off is continued by the same command, and Catnap does not start on half of an installation.
 */
import { open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Moment } from '../../lib/moments.ts';

export interface Journal {
  readonly from: string;
  readonly installationId: string;
  /** Null for the newest. */
  readonly at: Moment | null;
  readonly startedAt: string;
}

const name = 'restore.json';
/** What a new filesystem has. */
const ofNobody = ['lost+found'];

export const journalPath = (home: string) => join(home, name);

export async function readJournal(home: string): Promise<Journal | null> {
  const text = await readFile(journalPath(home), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  return text === null ? null : (JSON.parse(text) as Journal);
}

/** For the start of Catnap. */
export async function requireNoRestore(home: string): Promise<void> {
  const journal = await readJournal(home);
  if (journal === null) return;
  throw new Error(
    `a restore from ${journal.from} into ${home} is not finished: run the same catnap restore again, which continues it`,
  );
}

/** Refuses a home that holds anything but an unfinished restore of the same backup to the same moment. */
export async function requireEmptyOrSame(home: string, wanted: Omit<Journal, 'startedAt'>): Promise<Journal | null> {
  const journal = await readJournal(home);
  if (journal === null) {
    const entries = (await readdir(home).catch(() => [] as string[])).filter((entry) => !ofNobody.includes(entry));
    if (entries.length === 0) return null;
    throw new Error(
      `${home} is not empty (it holds ${entries[0]}): a whole installation is restored into an empty home`,
    );
  }
  const same = (one: Omit<Journal, 'startedAt'>) => JSON.stringify([one.from, one.installationId, one.at]);
  if (same(journal) === same(wanted)) return journal;
  const moment = journal.at === null ? 'its newest moment' : JSON.stringify(journal.at);
  throw new Error(
    `${home} holds an unfinished restore of ${journal.from} to ${moment}: continue that one, or empty the home`,
  );
}

export async function writeJournal(home: string, journal: Journal): Promise<void> {
  const path = journalPath(home);
  const file = await open(`${path}.new`, 'w', 0o600);
  try {
    await file.writeFile(JSON.stringify(journal, null, 2));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
}

export const removeJournal = (home: string) => rm(journalPath(home), { force: true });
