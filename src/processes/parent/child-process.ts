/**
 * Keeps one child process running: starts it, sends it what it needs, restarts it when it dies. The parent never
 * touches the child's work; they share only the channel.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { delay } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import { type ChildInit, openParentEnd, type ParentEnd } from '../channel/messages.ts';
import type { SharedPort } from './shared-port.ts';

export interface ChildOptions {
  readonly init: Omit<ChildInit, 'portFd'>;
  /** A socket that the process inherits. */
  readonly port: SharedPort | null;
  readonly log: Logger;
  /** Called with each new process, before it begins. */
  readonly onSpawn: (child: ChildProcess, channel: ParentEnd) => void;
}

export interface KeptChild {
  stop(): Promise<void>;
}

const restartMsMax = 10_000;
/** A process that lived this long was healthy; its end does not count towards a series of failures. */
const healthyMs = 30_000;
const stopMsMax = 15_000;

interface Spawned {
  readonly child: ChildProcess;
  readonly channel: ParentEnd;
}

/** Resolves when the child is ready; rejects when its first start fails. If it dies later, it is restarted. */
export async function keepChildRunning(options: ChildOptions): Promise<KeptChild> {
  const { log, init } = options;
  let stopping = false;
  let spawned = spawnChild(options);
  await untilReady(spawned, init.name);
  const supervision = supervise();

  async function supervise(): Promise<void> {
    let deaths = 0;
    while (!stopping) {
      const bornAt = Date.now();
      await exited(spawned.child);
      if (stopping) return;
      deaths = Date.now() - bornAt > healthyMs ? 1 : deaths + 1;
      const { exitCode: code, signalCode: signal } = spawned.child;
      const facts = { child: init.name, number: init.proxyNumber };
      log.error({ ...facts, deaths, code, signal }, 'a child process ended');
      await delay(Math.min(restartMsMax, 50 * 2 ** deaths));
      if (stopping) return;
      spawned = spawnChild(options);
      await untilReady(spawned, init.name).catch((error) =>
        log.error({ ...facts, err: error }, 'a child process did not start'),
      );
    }
  }

  return {
    stop: async () => {
      stopping = true;
      const { child, channel } = spawned;
      channel.send('stop', null);
      const killer = setTimeout(() => child.kill('SIGKILL'), stopMsMax);
      await exited(child);
      clearTimeout(killer);
      await supervision;
    },
  };
}

/** The descriptor that the process inherits, after the three usual ones and the channel. */
const inheritedFd = 4;

function spawnChild({ init, port, onSpawn }: ChildOptions): Spawned {
  const which = init.name === 'proxy' ? [init.name, String(init.proxyNumber)] : [init.name];
  const child = fork(new URL('../child.js', import.meta.url), which, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc', ...(port === null ? [] : [port.fd])],
  });
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
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}
