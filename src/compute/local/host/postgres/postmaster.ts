/**
 * One Postgres server as a process: finds, starts and stops it. It runs in its own session, with a file for its output,
 * and need not be our child: after a restart of Catnap the same functions work on a server that an earlier Catnap
 * started. Callers make sure that start and stop of one data directory never overlap.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { delay } from '../../../../lib/clock.ts';
import { programEnvironment } from '../../../../lib/run-program.ts';
import { enteringShell } from '../cgroups/entering-shell.ts';
import { enteringNamespace } from '../network/namespace.ts';
import type { ServerNetwork } from '../network/networks.ts';
import { type PidFileWatch, pidFileName, watchPidFile } from './pid-file-watch.ts';
import { readCommandLine, readProcessUid } from './process-info.ts';

export interface Postmaster {
  readonly pid: number;
  /** It reports that it accepts connections. */
  readonly ready: boolean;
  readonly commandLine: readonly string[];
}

export type StartedPostmaster = Pick<Postmaster, 'pid' | 'ready'>;

export interface PostmasterSpec {
  /** Path of `postgres`. */
  readonly program: string;
  readonly dataDirectory: string;
  readonly arguments: readonly string[];
  readonly logFile: string;
  readonly uid: number | null;
  /** Called once, as soon as the process exists. */
  readonly onSpawn?: () => void;
  /** Called once it accepts connections, with the milliseconds since it was last seen not to. */
  readonly onReady?: (sinceMs: number) => void;
  /** Files through which it enters its control group before it becomes Postgres; none where it has no group. */
  readonly groupFiles?: readonly string[] | null;
  /** The network that it enters, which only root can give it; otherwise it has the machine's. */
  readonly network?: ServerNetwork | null;
}

/**
 * When memory runs out the kernel kills one of the server's children, never the postmaster, which makes each child a
 * better victim than itself and lives to start them again.
 */
const serverEnvironment = {
  ...programEnvironment,
  PG_OOM_ADJUST_FILE: '/proc/self/oom_score_adj',
  PG_OOM_ADJUST_VALUE: '200',
};

/** Larger than any pid of Linux or macOS: no process will ever have it. */
const impossiblePid = 4_194_305;
const lockMsMax = 30_000;
const readyMsMax = 1_000;
/** What the server logs while a killed predecessor, or backends of it, still hold its lock or its shared memory. */
const predecessorLives = /pre-existing shared memory block|is another postmaster/i;

/** Further lines only say that the server ends. */
const namesCause = /\b(FATAL|PANIC): |terminated by signal|exited with exit code/;
const refusesClient = /the database system is /;

/** The server that runs on this data directory, if its pid file, its command line and its uid all agree. */
export async function findPostmaster(dataDirectory: string, uid: number | null): Promise<Postmaster | null> {
  const lines = await readPidFile(dataDirectory);
  const pid = Number(lines[0]);
  if (!Number.isInteger(pid) || pid <= 1) return null;
  const commandLine = await readCommandLine(pid);
  if (!commandLine || !servesDirectory(commandLine, dataDirectory)) return null;
  const processUid = uid === null ? null : await readProcessUid(pid);
  if (processUid !== null && processUid !== uid) return null;
  return { pid, ready: saysReady(lines), commandLine };
}

/**
 * Returns when the new process holds the data directory's lock: before that it might still be refused. Usually it
 * accepts connections by then too, but a server with a long recovery is not waited for.
 */
export async function startPostmaster(spec: PostmasterSpec): Promise<StartedPostmaster> {
  const deadline = Date.now() + 10_000;
  for (let { onSpawn } = spec; ; onSpawn = undefined) {
    // Each time: a predecessor that was being killed may have ended since.
    await disownDeadPid(spec.dataDirectory);
    const outcome = await spawnOnce(spec, onSpawn);
    if ('pid' in outcome) return outcome;
    if (!predecessorLives.test(outcome.reason) || Date.now() > deadline) {
      throw new Error(`postgres did not start: ${outcome.reason}`);
    }
    await delay(50);
  }
}

/** Fast shutdown; a server that does not stop in time is stopped harder. Returns when the process is gone. */
export async function stopPostmaster(
  dataDirectory: string,
  uid: number | null,
  patience = { fastMs: 60_000, immediateMs: 10_000 },
): Promise<void> {
  for (const [signal, patienceMs] of [
    ['SIGINT', patience.fastMs],
    ['SIGQUIT', patience.immediateMs],
    ['SIGKILL', 10_000],
  ] as const) {
    const running = await findPostmaster(dataDirectory, uid);
    if (!running) return;
    sendSignal(running.pid, signal);
    if (await waitForExit(running.pid, dataDirectory, patienceMs)) return;
  }
  throw new Error(`postgres on ${dataDirectory} does not stop`);
}

async function waitForExit(pid: number, dataDirectory: string, patienceMs: number): Promise<boolean> {
  const started = Date.now();
  while (Date.now() - started < patienceMs) {
    const commandLine = await readCommandLine(pid);
    if (!commandLine || !servesDirectory(commandLine, dataDirectory)) return true;
    await delay(Date.now() - started < 200 ? 2 : 20);
  }
  return false;
}

function servesDirectory(commandLine: readonly string[], dataDirectory: string): boolean {
  return commandLine.length === 1
    ? commandLine[0]?.includes(` -D ${dataDirectory} `) === true
    : commandLine[commandLine.indexOf('-D') + 1] === dataDirectory;
}

const saysReady = (pidFile: readonly string[]) => pidFile[7]?.trim() === 'ready';

/** Lines: pid, data directory, start time, port, socket directory, listen address, shared memory, status. */
async function readPidFile(dataDirectory: string): Promise<string[]> {
  // O_NOFOLLOW: the file is in a directory that belongs to the tenant's uid.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  let fd: number;
  try {
    fd = openSync(join(dataDirectory, pidFileName), flags);
  } catch {
    return [];
  }
  // Synchronous, not in another thread: it is read often while a server starts on the same few cores.
  try {
    const buffer = Buffer.alloc(4096);
    return buffer.toString('utf8', 0, readSync(fd, buffer, 0, buffer.length, 0)).split('\n');
  } finally {
    closeSync(fd);
  }
}

/**
 * The pid in a leftover file may be that of some other process by now, or of a server that was killed and that its
 * parent has not reaped, which in a container may never happen. Postgres only asks whether the pid exists, and would
 * refuse to start. The file is not removed: its shared memory line lets Postgres check whether old backends still live.
 */
async function disownDeadPid(dataDirectory: string): Promise<void> {
  const lines = await readPidFile(dataDirectory);
  const pid = Number(lines[0]);
  if (!Number.isInteger(pid) || pid <= 1 || pid === impossiblePid) return;
  // A zombie has no command line left.
  const commandLine = await readCommandLine(pid);
  if (commandLine && servesDirectory(commandLine, dataDirectory)) {
    throw new Error(`postgres is already running on ${dataDirectory}`);
  }
  const path = join(dataDirectory, pidFileName);
  await writeFile(path, [String(impossiblePid), ...lines.slice(1)].join('\n'), {
    flag: constants.O_WRONLY | constants.O_TRUNC | constants.O_NOFOLLOW | constants.O_NONBLOCK,
  });
}

async function spawnOnce(
  spec: PostmasterSpec,
  onSpawn: (() => void) | undefined,
): Promise<StartedPostmaster | { reason: string }> {
  const watch = watchPidFile(spec.dataDirectory);
  try {
    return await spawnAndWait(spec, onSpawn, watch);
  } finally {
    watch.close();
  }
}

async function spawnAndWait(
  spec: PostmasterSpec,
  onSpawn: (() => void) | undefined,
  watch: PidFileWatch,
): Promise<StartedPostmaster | { reason: string }> {
  const log = openSync(spec.logFile, 'a', 0o600);
  const { size: logStart } = fstatSync(log);
  let ended: string | null = null;
  const child = spawnServer(spec, log);
  child.on('error', (error) => {
    ended = error.message;
    watch.wake();
  });
  child.on('exit', (code, signal) => {
    ended = `it ended with ${signal ?? `exit code ${code}`}`;
    watch.wake();
  });
  child.unref();
  onSpawn?.();
  closeSync(log);
  const lockedBy = Date.now() + lockMsMax;
  let readyBy: number | null = null;
  for (let notReadyAt = performance.now(); ; ) {
    if (ended !== null) return { reason: await lastWords(spec.logFile, logStart, ended) };
    const readAt = performance.now();
    const lines = await readPidFile(spec.dataDirectory);
    const holdsLock = child.pid !== undefined && lines[0] === String(child.pid);
    if (holdsLock) readyBy ??= Date.now() + readyMsMax;
    const ready = saysReady(lines);
    if (holdsLock && ready) spec.onReady?.(performance.now() - notReadyAt);
    notReadyAt = readAt;
    if (holdsLock && (ready || Date.now() > (readyBy ?? 0))) return { pid: Number(child.pid), ready };
    if (readyBy === null && Date.now() > lockedBy) {
      child.kill('SIGKILL');
      return { reason: 'it did not take its lock file within 30 s' };
    }
    await watch.change();
  }
}

function spawnServer(spec: PostmasterSpec, logFd: number): ChildProcess {
  const { uid, network = null } = spec;
  const groups = (spec.groupFiles ?? []).map((file) => openSync(file, 'w'));
  const isEntering = network !== null && uid !== null;
  const inherited = isEntering ? [...groups, network.fd, ...(network.lifeline ? [network.lifeline] : [])] : groups;
  const server = [spec.program, '-D', spec.dataDirectory, ...spec.arguments];
  const closed = isEntering ? groups.length + 1 : groups.length;
  const shell = inherited.length === 0 ? server : enteringShell(groups.length, closed, server);
  const [program = '', ...words] = isEntering ? enteringNamespace(3 + groups.length, uid, shell) : shell;
  try {
    return spawn(program, words, {
      cwd: '/',
      env: serverEnvironment,
      detached: true,
      stdio: ['ignore', logFd, logFd, ...inherited],
      // Entering takes the privileges that are dropped on the way.
      ...(uid !== null && !isEntering && { uid, gid: uid }),
    });
  } finally {
    for (const fd of groups) closeSync(fd);
  }
}

/** What the server left in its log, for the operation's error: the lines around why it ended, or else its last ones. */
async function lastWords(logFile: string, from: number, fallback: string): Promise<string> {
  const text = (await readFile(logFile).catch(() => Buffer.alloc(0))).subarray(from).toString('utf8');
  const lines = text.split('\n').filter((line) => line !== '');
  const cause = lines.findIndex((line) => namesCause.test(line) && !refusesClient.test(line));
  const words = cause < 0 ? lines.slice(-3) : lines.slice(Math.max(0, cause - 1), cause + 3);
  return words.length > 0 ? words.join(' | ') : fallback;
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // It may have ended by itself.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
