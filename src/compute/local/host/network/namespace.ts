/** Network namespaces of the kernel: how one is made, and how a program begins in one. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readlinkSync } from 'node:fs';
import { delay } from '../../../../lib/clock.ts';
import { programEnvironment } from '../../../../lib/run-program.ts';

export interface Namespace {
  /** An open file that keeps the namespace alive, and through which programs enter it. */
  readonly fd: number;
  /** A process in it that does nothing, for tools that take a process; gone after `release`. */
  readonly keeperPid: number;
  release(): void;
}

const madeMsMax = 10_000;

/** A new one: its loopback device is down, and there is nothing else. Only root may. */
export async function makeNamespace(): Promise<Namespace> {
  const keeper = spawn('unshare', ['--net', '--', 'cat'], {
    cwd: '/',
    env: programEnvironment,
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  const release = () => keeper.stdin.destroy();
  try {
    const fd = await openWhenMade(keeper);
    return { fd, keeperPid: Number(keeper.pid), release };
  } catch (error) {
    release();
    throw error;
  }
}

async function openWhenMade(keeper: ChildProcess): Promise<number> {
  const own = readlinkSync('/proc/self/ns/net');
  let problem: string | null = null;
  keeper.on('error', (error) => {
    problem = error.message;
  });
  keeper.on('exit', (code) => {
    problem ??= `exit code ${code}`;
  });
  keeper.stderr?.on('data', (text: Buffer) => {
    problem = text.toString().trim();
  });
  for (const until = Date.now() + madeMsMax; problem === null && Date.now() < until; await delay(1)) {
    const path = `/proc/${keeper.pid}/ns/net`;
    if (keeper.pid === undefined || readlink(path) === own) continue;
    const fd = openSync(path, 'r');
    if (readlinkSync(`/proc/self/fd/${fd}`) !== own) return fd;
    closeSync(fd);
  }
  throw new Error(`a network namespace could not be made: ${problem ?? 'it took too long'}`);
}

function readlink(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

/** What runs `words` in the namespace behind the open file `fd` of the new process, as `uid` and without its groups. */
export function enteringNamespace(fd: number, uid: number, words: readonly string[]): readonly string[] {
  return ['nsenter', `--net=/proc/self/fd/${fd}`, '--setuid', String(uid), '--setgid', String(uid), '--', ...words];
}
