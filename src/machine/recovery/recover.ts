/**
 * Brings a base image, with the log behind it in `pg_wal`, to a moment: a private server replays the log up to there,
 * continues on a timeline of its own and is shut down cleanly. The directory can then be started like any other. A run
 * that was cut off anywhere is continued by calling it again.
 */
import { lchown, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { syncTree } from '../../compute/local/host/copy/tree.ts';
import { readControlFile } from '../../compute/local/host/postgres/control-file.ts';
import type { Settings } from '../../compute/local/host/postgres/server-config.ts';
import { isSegment, segmentsOf } from '../../compute/local/host/postgres/wal-segments.ts';
import type { Moment } from '../../lib/moments.ts';
import { type ScratchServer, type ScratchSpec, startScratchServer } from './scratch-server.ts';

export interface Recovered {
  /** Where the data ends on its old timeline, as far as the server reported it. */
  readonly lsn: string | null;
  /** When the last transaction in the data was committed; null if the log held none. */
  readonly lastCommitAt: string | null;
  /** False when the log ended before the moment: then the data is all that the log held. */
  readonly reachedMoment: boolean;
}

/** The log has an end of its own; a moment between its last commit and that end is not an error. */
const endedBefore = /recovery ended before configured recovery target was reached/;

export interface RecoverySpec extends Omit<ScratchSpec, 'settings'> {
  /** Which timeline the log leads to; without it, as far as the files of timelines beside the log lead. */
  readonly timeline?: number | undefined;
}

export type Inspect = (server: ScratchServer) => Promise<void>;

/** `moment` null is the end of the log. `inspect` works on the recovered data before its server is stopped. */
export async function recover(
  spec: RecoverySpec,
  moment: Moment | null,
  inspect: Inspect = async () => undefined,
): Promise<Recovered> {
  const { dataDirectory, uid, logFile } = spec;
  const signal = join(dataDirectory, 'recovery.signal');
  await writeFile(signal, '', { mode: 0o600 });
  if (uid !== null) await lchown(signal, uid, uid);
  let reachedMoment = moment !== null;
  try {
    await replay(spec, moment, inspect);
  } catch (error) {
    const said = await readFile(logFile, 'utf8').catch(() => '');
    if (moment === null || !endedBefore.test(said)) throw withLastWords(error, said);
    reachedMoment = false;
    await replay(spec, null, inspect);
  }
  const said = await readFile(logFile, 'utf8');
  await removeReplayed(dataDirectory);
  await syncTree(dataDirectory);
  return {
    lsn: /redo done at ([0-9A-F]+\/[0-9A-F]+)/.exec(said)?.[1] ?? null,
    lastCommitAt: isoTime(/last completed transaction was at log time (.+)$/m.exec(said)?.[1]),
    reachedMoment,
  };
}

async function replay(spec: RecoverySpec, moment: Moment | null, inspect: Inspect): Promise<void> {
  const timeline: Settings = spec.timeline === undefined ? {} : { recovery_target_timeline: String(spec.timeline) };
  const settings = { ...recoverySettings, ...timeline, ...target(moment) };
  const server = await startScratchServer({ ...spec, settings });
  try {
    await inspect(server);
  } finally {
    await server.stop();
  }
}

/**
 * Everything is in `pg_wal`, so the command that Postgres insists on finds nothing. Sessions wait until recovery is
 * over, which also spares comparing settings with those of the server that wrote the log.
 */
const recoverySettings: Settings = {
  restore_command: 'false',
  hot_standby: 'off',
  recovery_target_action: 'promote',
  wal_init_zero: 'off',
};

function target(moment: Moment | null): Settings {
  if (moment === null) return {};
  // Postgres takes Z for the abbreviation of a time zone, which this setting does not allow.
  if (moment.kind === 'time') return { recovery_target_time: moment.at.replace('T', ' ').replace(/z$/i, '+00') };
  // The record that starts at the position was written after whoever read the position had read it.
  return { recovery_target_lsn: moment.lsn, recovery_target_inclusive: 'off' };
}

/** The replayed log, which nothing needs any more, and what the base image brought. */
async function removeReplayed(dataDirectory: string): Promise<void> {
  const { shutDown, timeline, redo, checkpoint } = await readControlFile(dataDirectory);
  if (!shutDown) throw new Error('the server that recovered the data was not shut down cleanly');
  const needed = segmentsOf(timeline, redo, checkpoint);
  const folder = join(dataDirectory, 'pg_wal');
  for (const name of await readdir(folder)) {
    if (isSegment(name.slice(0, 24)) && !needed.has(name)) await rm(join(folder, name), { force: true });
  }
  for (const name of ['backup_label.old', 'tablespace_map.old', 'backup_manifest']) {
    await rm(join(dataDirectory, name), { force: true });
  }
}

function withLastWords(error: unknown, said: string): Error {
  const lines = said.split('\n').filter((line) => /FATAL|PANIC|ERROR|could not/.test(line));
  const reason = lines.slice(-3).join(' | ').slice(0, 1_000);
  const first = error instanceof Error ? error.message : String(error);
  return new Error(reason === '' ? first : `the log could not be replayed: ${reason}`, { cause: error });
}

function isoTime(text: string | undefined): string | null {
  if (text === undefined) return null;
  const time = new Date(`${text.replace(' UTC', 'Z').replace('+00', 'Z')}`);
  return Number.isNaN(time.getTime()) ? null : time.toISOString();
}
