/**
 * Keeps one child process running: starts it, sends it what it needs, restarts it when it dies. The parent never
 * touches the child's work; they share only the channel. A process that does not stay up on Bun goes on on Node.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { delay } from '../../lib/clock.ts';
import { environmentWith } from '../../lib/config.ts';
import { errorText } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { type ChosenRuntime, onNode } from '../../machine/proxy-runtime.ts';
import { type ChildInit, openParentEnd, type ParentEnd } from '../channel/messages.ts';
import type { ChildUser } from './child-user.ts';
import type { SharedPort } from './shared-port.ts';

export interface ChildOptions {
  readonly init: Omit<ChildInit, 'portFd'>;
  /** A socket that the process inherits. */
  readonly port: SharedPort | null;
  readonly runtime: ChosenRuntime;
  readonly log: Logger;
  /** How long the process may take to stop before it is killed. */
  readonly stopMs: number;
  /** A process that was forked for this before, and loads its code already. */
  readonly forked: ChildProcess;
  /** Makes another one. */
  readonly fork: (runtime: ChosenRuntime) => ChildProcess;
  /** Called with each new process, before it begins. */
  readonly onSpawn: (child: ChildProcess, channel: ParentEnd) => void;
}

export type ChildName = Pick<ChildInit, 'name' | 'number'>;

export interface KeptChild {
  /** May be called again. */
  stop(): Promise<void>;
  /** Stops the process, and resolves when another one serves in its place. */
  restart(): Promise<void>;
}

const restartMsMax = 10_000;
/** A process that served this long was healthy; its end does not count towards a series of failures. */
const healthyMs = 5_000;
const firstRestartMs = 50;
/** So many short lives in a row are taken for a fault of Bun's, and the next process runs on Node. */
const shortLivesMax = 3;

interface Spawned {
  readonly child: ChildProcess;
  readonly channel: ParentEnd;
}

/** Resolves when the child is ready; rejects when its first start fails. If it dies later, it is restarted. */
export async function keepChildRunning(options: ChildOptions): Promise<KeptChild> {
  const { log, init } = options;
  const facts = { child: init.name, number: init.number };
  let stopping = false;
  /** Called when the process that was asked to stop has a successor, or will have none. */
  let onSuccessor: (() => void) | null = null;
  let runtime = options.runtime;
  const leaveBun = (reason: string) => {
    runtime = onNode(reason);
    log.error({ ...facts, reason }, 'the process goes on on Node, because it does not stay up on Bun');
  };
  const isOnBun = () => runtime.name === 'bun';
  let spawned = beginIn(isGone(options.forked) ? options.fork(runtime) : options.forked, options);
  await untilReady(spawned, init.name).catch(startOnNode);
  const supervision = supervise();

  async function startOnNode(error: unknown): Promise<void> {
    if (!isOnBun()) throw error;
    spawned.child.kill('SIGKILL');
    await exited(spawned.child);
    leaveBun(errorText(error));
    spawned = beginIn(options.fork(runtime), options);
    await untilReady(spawned, init.name);
  }

  async function supervise(): Promise<void> {
    let deaths = 0;
    while (!stopping) {
      const bornAt = Date.now();
      await exited(spawned.child);
      if (stopping) return onSuccessor?.();
      if (onSuccessor === null) await noteDeath(bornAt);
      if (stopping) return onSuccessor?.();
      spawned = beginIn(options.fork(runtime), options);
      await untilReady(spawned, init.name).catch((error) =>
        log.error({ ...facts, err: error }, 'a child process did not start'),
      );
      onSuccessor?.();
      onSuccessor = null;
    }

    async function noteDeath(bornAt: number): Promise<void> {
      deaths = Date.now() - bornAt > healthyMs ? 1 : deaths + 1;
      const { exitCode: code, signalCode: signal } = spawned.child;
      log.error({ ...facts, deaths, code, signal }, 'a child process ended');
      if (deaths >= shortLivesMax && isOnBun()) leaveBun(`it ended ${deaths} times within seconds`);
      await delay(Math.min(restartMsMax, firstRestartMs * 2 ** (deaths - 1)));
    }
  }

  async function end(): Promise<void> {
    const { child, channel } = spawned;
    channel.send('stop', null);
    const killer = setTimeout(() => child.kill('SIGKILL'), options.stopMs);
    await exited(child);
    clearTimeout(killer);
  }

  async function stop(): Promise<void> {
    stopping = true;
    await end();
    await supervision;
  }

  async function restart(): Promise<void> {
    if (stopping) return;
    const succeeded = new Promise<void>((resolve) => {
      onSuccessor = resolve;
    });
    await end();
    await succeeded;
  }

  let stopped: Promise<void> | null = null;
  return {
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
    restart,
  };
}

/** The descriptor that the process inherits, after the three usual ones and the channel. */
const inheritedFd = 4;

/** Bun would take variables, settings and even packages from what it finds around it, and keep compiled files. */
const bunWords = ['--no-env-file', '--no-install', '--config=/dev/null'];
const bunEnvironment = { BUN_RUNTIME_TRANSPILER_CACHE_PATH: '0', DO_NOT_TRACK: '1' };

export const childProgram = new URL('../child.js', import.meta.url);

/** Differs once the program was replaced, as an upgrade does: its processes would not understand this one. */
export function programIdentity(): string {
  const found = statSync(childProgram, { throwIfNoEntry: false });
  return found === undefined ? 'none' : [found.dev, found.ino, found.ctimeMs].join(' ');
}

/** The process loads its code, and waits for `beginIn` to say what it works with. */
export function forkChild(
  { name, number }: ChildName,
  port: SharedPort | null,
  { program }: ChosenRuntime,
  user: ChildUser | null,
): ChildProcess {
  const words = [name, String(number)];
  const onBun = { execPath: program ?? '', execArgv: bunWords, env: environmentWith(bunEnvironment) };
  const child = fork(childProgram, words, {
    // Bun refuses nothing.
    ...(program === null ? user : onBun),
    stdio: ['ignore', 'inherit', 'inherit', 'ipc', ...(port === null ? [] : [port.fd])],
  });
  // A process that could not be made has no pid, and is made again when it is needed.
  child.on('error', () => {});
  return child;
}

function beginIn(child: ChildProcess, { init, port, onSpawn }: ChildOptions): Spawned {
  const channel = openParentEnd(child);
  onSpawn(child, channel);
  channel.send('init', { ...init, portFd: port === null ? null : inheritedFd });
  return { child, channel };
}

async function untilReady({ child, channel }: Spawned, name: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    channel.on('ready', () => resolve());
    channel.on('failed', (reason) => reject(new Error(`${name}: ${reason}`)));
    child.on('error', reject);
    child.on('exit', () => reject(new Error(`${name}: the process ended while starting`)));
  });
}

async function exited(child: ChildProcess): Promise<void> {
  if (!isGone(child)) await once(child, 'exit');
}

function isGone({ pid, exitCode, signalCode }: ChildProcess): boolean {
  return pid === undefined || exitCode !== null || signalCode !== null;
}
