/** A proxy in front of the tests' own Postgres, with a scripted control plane: one endpoint, `ep-a`. */
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect as connectTcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import postgres from 'postgres';
import { inject } from 'vitest';
import { type Certificates, ensureCertificates } from '../../src/lib/certificates.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { buildVerifier } from '../../src/lib/scram-verifier.ts';
import type { ControlPlane, DialAddress } from '../../src/proxy/kit/control-plane.ts';
import { type ProxyOptions, type RunningProxy, startProxy } from '../../src/proxy/listener.ts';
import { MessageStream } from '../../src/proxy/protocol/message-stream.ts';
import {
  type BackendKey,
  cancelRequest,
  parseAuthentication,
  parseBackendKeyData,
  parseErrorResponse,
  saslInitialResponse,
  startupMessage,
} from '../../src/proxy/protocol/messages.ts';
import { scramMechanism, startClientExchange } from '../../src/proxy/protocol/scram.ts';
import { cstring, encodeMessage } from '../../src/proxy/protocol/wire.ts';

export const psqlVersion = findPsql();

function findPsql(): number {
  try {
    return Number(/ (\d+)/.exec(execFileSync('psql', ['--version'], { encoding: 'utf8' }))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

export interface RawClient {
  readonly messages: MessageStream;
  readonly key: BackendKey;
  /** ParameterStatus as it was reported. */
  readonly parameters: Map<string, string>;
}

export interface StartedProxy extends RunningProxy {
  readonly wakes: string[];
}

/** What one test file needs: certificates, the verifier of the tests' role, and everything to be undone. */
export class PooledProxies {
  readonly system = inject('systemDatabase');
  readonly role = {
    user: this.system.username,
    password: this.system.password,
    database: this.system.database,
  };
  readonly compute: DialAddress = { kind: 'unix', path: this.system.path };
  /** A session that does not go through the proxy. */
  readonly direct = postgres({ ...this.system, max: 2, onnotice: () => {} });
  #directory = '';
  #certificates: Certificates | null = null;
  verifier = '';
  readonly #cleanups: (() => unknown)[] = [];

  async prepare(): Promise<void> {
    this.#directory = await mkdtemp(join(tmpdir(), 'catnap-pool-'));
    const names = { domain: 'localhost', region: 'local', clock: systemClock };
    this.#certificates = await ensureCertificates({ directory: this.#directory, ...names });
    this.verifier = await this.#learnVerifier();
  }

  async dispose(): Promise<void> {
    await this.direct.end();
    await rm(this.#directory, { recursive: true, force: true });
  }

  onCleanup(cleanup: () => unknown): void {
    this.#cleanups.push(cleanup);
  }

  async cleanUp(): Promise<void> {
    for (const cleanup of this.#cleanups.splice(0).reverse()) await cleanup();
  }

  async start(plane: Partial<ControlPlane> = {}, options: Partial<ProxyOptions> = {}): Promise<StartedProxy> {
    const wakes: string[] = [];
    const wake = plane.wake ?? (async () => this.compute);
    const certificates = this.#certificates;
    if (certificates === null) throw new Error('prepare() first');
    const proxy = await startProxy({
      controlPlane: {
        findLogin: async (endpointId, user) =>
          endpointId === 'ep-a'
            ? { verifier: user === this.role.user ? this.verifier : null, disabled: false, allowedIps: [] }
            : null,
        findAddress: async () => null,
        reportActivity: async () => {},
        ...plane,
        wake: (endpointId) => {
          wakes.push(endpointId);
          return wake(endpointId);
        },
      },
      ...{ bind: '127.0.0.1', port: 0, tls: () => certificates, clock: systemClock },
      ...{ domain: 'localhost', region: 'local', log: createLogger({ level: 'silent', process: 'proxy' }) },
      ...options,
    });
    this.onCleanup(() => proxy.close());
    return { ...proxy, wakes };
  }

  uri(proxy: RunningProxy, endpoint = 'ep-a-pooler'): string {
    const login = `${this.role.user}:${this.role.password}`;
    return `postgresql://${login}@localhost:${proxy.port}/${this.role.database}?options=endpoint%3D${endpoint}`;
  }

  async client(proxy: RunningProxy, options: pg.ClientConfig = {}): Promise<pg.Client> {
    const client = new pg.Client({
      ...{ host: '127.0.0.1', port: proxy.port, ...this.role, options: 'endpoint=ep-a-pooler' },
      ...options,
    });
    client.on('error', () => {});
    this.onCleanup(() => client.end().catch(() => {}));
    await client.connect();
    return client;
  }

  /** Protocol by hand, for what drivers hide. */
  async raw(proxy: RunningProxy, parameters: Record<string, string> = {}): Promise<RawClient> {
    const socket = connectTcp(proxy.port, '127.0.0.1');
    this.onCleanup(() => socket.destroy());
    const messages = new MessageStream(socket, 100_000_000);
    messages.write(
      startupMessage(Object.entries({ user: this.role.user, database: this.role.database, ...parameters })),
    );
    await messages.readMessage();
    messages.write(encodeMessage('p', cstring(`endpoint=ep-a-pooler;${this.role.password}`)));
    let key: BackendKey = { processId: 0, secret: 0 };
    const reported = new Map<string, string>();
    for (;;) {
      const { type, body } = await messages.readMessage();
      if (type === 'E') throw new Error(parseErrorResponse(body).message);
      if (type === 'K') key = parseBackendKeyData(body);
      if (type === 'S') reported.set(...(body.toString('utf8').split('\0').slice(0, 2) as [string, string]));
      if (type === 'Z') return { messages, key, parameters: reported };
    }
  }

  async cancel(proxy: RunningProxy, key: BackendKey): Promise<void> {
    const socket = connectTcp(proxy.port, '127.0.0.1');
    socket.end(cancelRequest(key));
    socket.resume();
    await new Promise((resolve) => socket.once('close', resolve));
  }

  /** The login of the tests may not read pg_authid; but any client is told salt and count, the rest is arithmetic. */
  async #learnVerifier(): Promise<string> {
    const socket = connectTcp(this.system.path);
    const messages = new MessageStream(socket, 10_000);
    messages.write(startupMessage([['user', this.system.username]]));
    await messages.readMessage();
    messages.write(saslInitialResponse(scramMechanism, startClientExchange().first));
    const answer = parseAuthentication((await messages.readMessage()).body);
    socket.destroy();
    const [, salt = '', iterations = ''] =
      answer.kind === 'sasl_continue' ? (/s=([^,]+),i=(\d+)/.exec(answer.data) ?? []) : [];
    return buildVerifier(this.system.password, Buffer.from(salt, 'base64'), Number(iterations));
  }
}
