/**
 * Connections that are copied between a client of the HTTP port and a proxy, byte for byte. Neither Node nor Fastify
 * counts them once HTTP is over, so they are closed here when the process stops.
 */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { delay } from '../../lib/clock.ts';

export interface Tunnel {
  readonly client: Socket;
  readonly proxy: Duplex;
}

/** How long the other side has to read what is left for it. */
const lingerMs = 5_000;
/** How long the proxy has to end sessions whose client can no longer be reached. */
const closeMs = 2_000;

export class Tunnels {
  readonly #open = new Set<Tunnel>();
  #isClosing = false;

  add(tunnel: Tunnel): void {
    const { client, proxy } = tunnel;
    this.#open.add(tunnel);
    client.once('close', () => this.#open.delete(tunnel));
    proxy.on('error', () => {});
    client.pipe(proxy);
    proxy.pipe(client);
    // `pipe` ends the other side, and leaves it open when one closes without an end.
    client.once('close', () => proxy.destroy());
    proxy.once('close', () => closeSoon(client));
    if (client.destroyed) proxy.destroy();
    if (this.#isClosing) hangUp(tunnel);
  }

  /**
   * Resolves when all clients have left, or after `ms`. A proxy that stops, too, tells its own clients when their
   * transactions have ended; one that does not serves them until then.
   */
  async allClosed(ms: number): Promise<void> {
    const over = new AbortController();
    const closed = [...this.#open].map(({ client }) => new Promise((resolve) => client.once('close', resolve)));
    void Promise.all(closed).then(() => over.abort());
    if (closed.length > 0 && ms > 0) await delay(ms, over.signal);
  }

  /** To the proxy it is as if the clients had left; they learn it by the Close frame that the proxy answers with. */
  async close(): Promise<void> {
    this.#isClosing = true;
    const closed = [...this.#open].map(
      ({ client }) => new Promise<void>((resolve) => client.once('close', () => resolve())),
    );
    for (const tunnel of this.#open) hangUp(tunnel);
    const killer = setTimeout(() => {
      for (const { client } of this.#open) client.destroy();
    }, closeMs);
    await Promise.all(closed);
    clearTimeout(killer);
  }
}

function hangUp({ client, proxy }: Tunnel): void {
  client.unpipe(proxy);
  client.resume();
  proxy.end();
}

/** Closes when the client has taken what was written to it, or has not in time. */
export function closeSoon(client: Socket): void {
  client.resume();
  const timer = setTimeout(() => client.destroy(), lingerMs);
  client.once('close', () => clearTimeout(timer));
  client.end(() => client.destroy());
}
