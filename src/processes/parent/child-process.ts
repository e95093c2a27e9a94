/**
 * Keeps one role running: starts its process, hands it what it needs, starts it again when it dies. The parent never
 * touches the role's work; they share only the channel.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { delay } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import { isRoleMessage, type ParentMessage, type RoleInit } from '../channel/messages.ts';
import type { SharedPort } from './shared-port.ts';

export interface RoleProcessOptions {
  readonly init: Omit<RoleInit, 'portFd'>;
  /** A socket that the process inherits. */
  readonly port: SharedPort | null;
  readonly log: Logger;
  /** Called with each new process, before it begins. */
  readonly onSpawn: (child: ChildProcess) => void;
}

export interface RoleProcess {
  stop(): Promise<void>;
}

const restartMsMax = 10_000;
/** A process that lived this long was healthy; its end is not part of a series. */
const healthyMs = 30_000;
const stopMsMax = 15_000;

/** Resolves when the role is ready; rejects when its first start fails. Later deaths are answered by a restart. */
export async function startRoleProcess(options: RoleProcessOptions): Promise<RoleProcess> {
  const { log, init } = options;
  let stopping = false;
  let child = spawnRole(options);
  await untilReady(child, init);
  const supervision = supervise();

  async function supervise(): Promise<void> {
    let deaths = 0;
    while (!stopping) {
      const bornAt = Date.now();
      await exited(child);
      if (stopping) return;
      deaths = Date.now() - bornAt > healthyMs ? 1 : deaths + 1;
      const { exitCode: code, signalCode: signal } = child;
      log.error({ role: init.role, number: init.proxyNumber, deaths, code, signal }, 'a role process ended');
      await delay(Math.min(restartMsMax, 50 * 2 ** deaths));
      if (stopping) return;
      child = spawnRole(options);
      await untilReady(child, init).catch((error) =>
        log.error({ err: error, role: init.role, number: init.proxyNumber }, 'a role did not start'),
      );
    }
  }

  return {
    stop: async () => {
      stopping = true;
      if (child.connected) send(child, { kind: 'stop' });
      const killer = setTimeout(() => child.kill('SIGKILL'), stopMsMax);
      await exited(child);
      clearTimeout(killer);
      await supervision;
    },
  };
}

/** Where the process finds what it inherits, behind the three usual ones and the channel. */
const inheritedFd = 4;

function spawnRole({ init, port, onSpawn }: RoleProcessOptions): ChildProcess {
  const which = init.role === 'proxy' ? [init.role, String(init.proxyNumber)] : [init.role];
  const child = fork(new URL('../child.js', import.meta.url), which, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc', ...(port === null ? [] : [port.fd])],
  });
  onSpawn(child);
  send(child, { ...init, portFd: port === null ? null : inheritedFd });
  return child;
}

async function untilReady(child: ChildProcess, init: RoleProcessOptions['init']): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    child.on('message', (message) => {
      if (!isRoleMessage(message)) return;
      if (message.kind === 'ready') resolve();
      if (message.kind === 'failed') reject(new Error(`${init.role}: ${message.reason}`));
    });
    child.on('error', reject);
    child.on('exit', () => reject(new Error(`${init.role}: the process ended while starting`)));
  });
}

async function exited(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}

/** With a callback, because a child that is gone is an error nobody else would handle. */
export function send(child: ChildProcess, message: ParentMessage): void {
  child.send(message, () => {});
}
