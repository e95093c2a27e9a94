/**
 * Listening sockets that a service manager passes to Catnap, as systemd does for a socket unit. The manager keeps them
 * open while one Catnap stops and the next one starts, so that clients wait for that moment instead of being refused.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import type { Config } from '../../lib/config.ts';
import type { SharedPort } from './shared-port.ts';

/** What this uses of the handles inside Node's servers, which no document names; `shared-port.ts` does the same. */
interface Handle {
  readonly fd: number;
  getsockname(into: { port?: number }): number;
  close(): void;
}

/** The sockets by their ports, each of which must be one of the configuration. */
export async function takePassedPorts(
  descriptors: readonly number[],
  { httpPort, pgPort }: Pick<Config, 'httpPort' | 'pgPort'>,
): Promise<ReadonlyMap<number, SharedPort>> {
  const taken = new Map<number, SharedPort>();
  if (descriptors.length === 0) return taken;
  const mirror = startMirror();
  try {
    for (const descriptor of descriptors) {
      const handle = openHandle(descriptor);
      const port = portOf(handle);
      if (port !== httpPort && port !== pgPort) {
        throw new Error(
          `the service manager passes a socket on port ${port}: allowed are CATNAP_HTTP_PORT (${httpPort}) and ` +
            `CATNAP_PG_PORT (${pgPort})`,
        );
      }
      const kept = await throughMirror(mirror, handle);
      handle.close();
      taken.set(port, { fd: kept.fd, close: () => kept.close() });
    }
    return taken;
  } finally {
    mirror.kill('SIGKILL');
  }
}

/**
 * A process that sends back what it is sent. Every program that is started would inherit a passed socket, tenants'
 * servers among them, and Node cannot mark it as its own; but one that comes over a channel is marked.
 */
function startMirror(): ChildProcess {
  const words = ['--eval', `process.on('message', (message, handle) => process.send(message, handle))`];
  return spawn(process.execPath, words, { env: {}, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
}

async function throughMirror(mirror: ChildProcess, handle: Handle): Promise<Handle> {
  const answered = Promise.race([
    once(mirror, 'message'),
    once(mirror, 'exit').then(() => {
      throw new Error('the sockets of the service manager could not be taken: a helper process ended');
    }),
  ]);
  // A raw handle is none of the documented kinds; Node's cluster module sends its ports this way.
  mirror.send('port', handle as never);
  const [, received] = await answered;
  return requireHandle(received);
}

function openHandle(descriptor: number): Handle {
  const create: unknown = Reflect.get(net, '_createServerHandle');
  if (typeof create !== 'function') throw new Error('this version of Node cannot take sockets of a service manager');
  return requireHandle(create(null, null, null, descriptor));
}

function requireHandle(value: unknown): Handle {
  if (typeof value === 'object' && value !== null && 'fd' in value && 'getsockname' in value) return value as Handle;
  throw new Error('the service manager passes something that is not a listening TCP socket');
}

function portOf(handle: Handle): number {
  const address: { port?: number } = {};
  handle.getsockname(address);
  return address.port ?? 0;
}
