/** A client that knows just enough of the protocol to log in, to send anything, and to read what comes back. */
import { connect, type Socket } from 'node:net';
import {
  type Authentication,
  parseAuthentication,
  saslInitialResponse,
  saslResponse,
  startupMessage,
} from '../../../src/proxy/protocol/messages.ts';
import { scramMechanism, startClientExchange } from '../../../src/proxy/protocol/scram.ts';
import { cstring, encodeMessage, FrameBuffer } from '../../../src/proxy/protocol/wire.ts';
import { scramFinal } from '../../helpers/proxy.ts';

/** Where clients log in: the server says whether it takes the password as it is, or a proof of it. */
export interface Target {
  readonly address: { readonly host: string; readonly port: number } | { readonly path: string };
  readonly user: string;
  readonly database: string;
  readonly password: string;
  readonly parameters?: Readonly<Record<string, string>>;
}

export interface Received {
  readonly type: string;
  readonly body: Buffer;
}

/** A connection that is neither answered nor closed within this time hangs. */
export const hangMs = 150_000;
const messageBytesMax = 100_000_000;

export class Hang extends Error {}

export class WireClient {
  readonly socket: Socket;
  readonly #frames = new FrameBuffer();
  readonly received: Received[] = [];
  isClosed = false;
  #notify = () => {};

  /** `framing` is `none` where what comes back may be no messages: before a session there is TLS, and single bytes. */
  constructor(target: Target, framing: 'messages' | 'none' = 'messages') {
    this.socket = connect(target.address);
    this.socket.setNoDelay(true);
    this.socket.on('error', () => {});
    this.socket.on('data', (chunk: Buffer) => {
      if (framing === 'none') return;
      this.#frames.push(chunk);
      for (;;) {
        const message = this.#frames.nextMessage(messageBytesMax);
        if (message === null) break;
        this.received.push({ type: message.type, body: Buffer.from(message.body) });
      }
      this.#notify();
    });
    this.socket.on('close', () => {
      this.isClosed = true;
      this.#notify();
    });
  }

  /** Logs in, and forgets what was received until then. */
  static async logIn(target: Target): Promise<WireClient> {
    const client = new WireClient(target);
    const { user, database, password, parameters } = target;
    client.socket.write(startupMessage(Object.entries({ user, database, ...parameters })));
    await client.#prove(password);
    await client.until(({ received }) => received.some(({ type }) => type === 'Z' || type === 'E'));
    const refusal = client.received.find(({ type }) => type === 'E');
    if (refusal !== undefined) throw new Error(`no login: ${refusal.body.toString('latin1')}`);
    client.received.length = 0;
    return client;
  }

  async #prove(password: string): Promise<void> {
    const asked = await this.#authentication(0);
    if (asked?.kind !== 'sasl') return void this.socket.write(encodeMessage('p', cstring(password)));
    const exchange = startClientExchange();
    this.socket.write(saslInitialResponse(scramMechanism, exchange.first));
    const challenge = await this.#authentication(1);
    if (challenge?.kind !== 'sasl_continue') return;
    this.socket.write(saslResponse(await scramFinal(exchange, challenge.data, password)));
  }

  async #authentication(at: number): Promise<Authentication | null> {
    await this.until(({ received }) => received.length > at);
    const message = this.received[at];
    return message?.type === 'R' ? parseAuthentication(message.body) : null;
  }

  async send(pieces: readonly Buffer[]): Promise<void> {
    for (const piece of pieces) {
      if (this.isClosed) return;
      this.socket.write(piece);
      if (pieces.length > 1) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Resolves when it holds or the connection is closed. */
  until(holds: (client: WireClient) => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const isLate = () => reject(new Hang(`neither an answer nor an end after ${this.received.length} messages`));
      const timer = setTimeout(() => isLate(), hangMs);
      this.#notify = () => {
        if (!this.isClosed && !holds(this)) return;
        clearTimeout(timer);
        resolve();
      };
      this.#notify();
    });
  }

  async end(): Promise<void> {
    this.socket.end();
    await this.until(() => false);
  }

  destroy(): void {
    this.socket.destroy();
  }
}
