/**
 * A system database that is not Catnap's own, behind a TCP port of this process: the connections to it can be broken
 * and held up as those over a network are.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { makeDatabase } from '../../helpers/database.ts';

export class DatabaseElsewhere {
  readonly url: string;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  readonly #close: () => Promise<void>;
  #isCut = false;
  #isHeldUp = false;

  private constructor(url: string, close: () => Promise<void>) {
    this.url = url;
    this.#close = close;
  }

  static async open(): Promise<DatabaseElsewhere> {
    const { options, drop } = await makeDatabase(1);
    if (!('path' in options) || options.path === undefined) throw new Error('the tests’ server has no socket');
    const { path, username, password, database } = options;
    const server = createServer((client) => elsewhere.#join(client, path));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const url = `postgres://${username}:${encodeURIComponent(password ?? '')}@127.0.0.1:${port}/${database}`;
    const elsewhere = new DatabaseElsewhere(url, async () => {
      server.close();
      elsewhere.cut();
      await drop();
    });
    return elsewhere;
  }

  close(): Promise<void> {
    return this.#close();
  }

  /** Ends every connection, and each new one at once. */
  cut(): void {
    this.#isCut = true;
    for (const [client, server] of this.#pairs) {
      client.resetAndDestroy();
      // Over a unix socket, which has no such end.
      server.destroy();
    }
  }

  /** No byte goes through, and nothing ends. */
  holdUp(): void {
    this.#isHeldUp = true;
    for (const pair of this.#pairs) for (const socket of pair) socket.pause();
  }

  mend(): void {
    [this.#isCut, this.#isHeldUp] = [false, false];
    for (const pair of this.#pairs) for (const socket of pair) socket.resume();
  }

  #join(client: Socket, path: string): void {
    client.on('error', () => undefined);
    if (this.#isCut) {
      client.resetAndDestroy();
      return;
    }
    const server = connect(path);
    server.on('error', () => undefined);
    const pair = [client, server] as const;
    this.#pairs.add(pair);
    for (const [from, to] of [pair, [server, client] as const]) {
      from.pipe(to);
      from.on('close', () => {
        to.destroy();
        this.#pairs.delete(pair);
      });
      if (this.#isHeldUp) from.pause();
    }
  }
}
