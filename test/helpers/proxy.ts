/**
 * Proxies for tests, with a scripted control plane that knows one endpoint, `ep-a`, and one role: `TestProxies` with
 * no server behind them, `PostgresProxies` in front of the tests' own Postgres. Then clients for them, from drivers to
 * single messages.
 */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect as connectTcp, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import postgres from 'postgres';
import { inject } from 'vitest';
import { type Certificates, ensureCertificates } from '../../src/lib/certificates.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { buildVerifier, deriveKeys } from '../../src/lib/scram-verifier.ts';
import type { ControlPlane, DialAddress } from '../../src/proxy/kit/control-plane.ts';
import { type ProxyOptions, type RunningProxy, startProxy } from '../../src/proxy/listener.ts';
import type { ByteStream } from '../../src/proxy/protocol/byte-stream.ts';
import { MessageStream } from '../../src/proxy/protocol/message-stream.ts';
import {
  type BackendKey,
  cancelRequest,
  type ErrorReport,
  parseBackendKeyData,
  parseErrorResponse,
  startupMessage,
} from '../../src/proxy/protocol/messages.ts';
import { type ClientExchange, proveToServer } from '../../src/proxy/protocol/scram.ts';
import { cstring, encodeMessage } from '../../src/proxy/protocol/wire.ts';
import { learnVerifier } from './learn-verifier.ts';
import { startProxyOnBun } from './proxy-on-bun.ts';

/** 0 where psql is not installed. */
export const psqlVersion = findPsql();
/**
 * The proxies of tests run in the test's own process, and on Bun in another one, which cannot read a clock of the test.
 */
export const isOnBun = process.env.CATNAP_TEST_PROXY_RUNTIME === 'bun';
export const silentLog = createLogger({ level: 'silent', process: 'proxy' });
const names = { domain: 'localhost', region: 'local' };
const nowhere: DialAddress = { kind: 'unix', path: '/nonexistent/socket' };

/** A control plane that knows nothing and wakes a compute at which nothing answers, except for the given parts. */
export function scriptControlPlane(parts: Partial<ControlPlane> = {}): ControlPlane {
  return {
    findLogin: async () => null,
    wake: async () => nowhere,
    findAddress: async () => null,
    reportActivity: async () => {},
    reportTransfer: async () => {},
    ...parts,
  };
}

export interface StartedProxy extends RunningProxy {
  /** Endpoints that the proxy has asked to wake, in order. */
  readonly wakes: string[];
  /** The last activity that it has reported, by endpoint. */
  readonly activity: Map<string, Date>;
}

/** The proxies of one test file. */
export class TestProxies {
  readonly role: { readonly user: string; readonly password: string } = { user: 'ann', password: 'right' };
  /** Where a wake leads to. */
  readonly compute: DialAddress = nowhere;
  /** The SCRAM verifier of the role. */
  verifier = '';
  #directory = '';
  #certificates: Certificates | null = null;
  readonly #cleanups: (() => unknown)[] = [];
  readonly #startProxy: typeof startProxy;

  constructor(runtime: 'node' | 'bun' = isOnBun ? 'bun' : 'node') {
    this.#startProxy = runtime === 'bun' ? startProxyOnBun : startProxy;
  }

  async prepare(): Promise<void> {
    this.#directory = await mkdtemp(join(tmpdir(), 'catnap-proxy-'));
    this.#certificates = await ensureCertificates({ directory: this.#directory, ...names, clock: systemClock });
    this.verifier = await this.makeVerifier();
  }

  async dispose(): Promise<void> {
    await this.cleanUp();
    await rm(this.#directory, { recursive: true, force: true });
  }

  protected async makeVerifier(): Promise<string> {
    return buildVerifier(this.role.password, undefined, 4096);
  }

  /** For sockets and the like; removed at the end. */
  get directory(): string {
    return this.#directory;
  }

  get certificates(): Certificates {
    if (this.#certificates === null) throw new Error('prepare() first');
    return this.#certificates;
  }

  onCleanup(cleanup: () => unknown): void {
    this.#cleanups.push(cleanup);
  }

  async cleanUp(): Promise<void> {
    for (const cleanup of this.#cleanups.splice(0).reverse()) await cleanup();
  }

  async start(plane: Partial<ControlPlane> = {}, options: Partial<ProxyOptions> = {}): Promise<StartedProxy> {
    const wakes: string[] = [];
    const activity = new Map<string, Date>();
    const wake = plane.wake ?? (async () => this.compute);
    const proxy = await this.#startProxy({
      controlPlane: scriptControlPlane({
        findLogin: async (endpointId, role) => this.#findLogin(endpointId, role),
        reportActivity: async (seen) => {
          for (const [endpointId, at] of seen) activity.set(endpointId, at);
        },
        ...plane,
        wake: (endpointId) => {
          wakes.push(endpointId);
          return wake(endpointId);
        },
      }),
      bind: '127.0.0.1',
      port: 0,
      tls: () => this.certificates,
      clock: systemClock,
      log: silentLog,
      ...names,
      ...options,
    });
    this.onCleanup(() => proxy.close());
    return { ...proxy, wakes, activity };
  }

  #findLogin(endpointId: string, role: string) {
    if (endpointId !== 'ep-a') return null;
    return { verifier: role === this.role.user ? this.verifier : null, disabled: false, allowedIps: [] };
  }

  /** A connection that has sent nothing yet. */
  async connect(proxy: RunningProxy, allowHalfOpen = false): Promise<Socket> {
    const socket = connectTcp({ port: proxy.port, host: '127.0.0.1', allowHalfOpen });
    socket.on('error', () => {});
    this.onCleanup(() => socket.destroy());
    await once(socket, 'connect');
    return socket;
  }

  /** Resolves when the proxy has closed the connection of the cancel request; as with libpq, the client does not. */
  async cancel(proxy: RunningProxy, key: BackendKey): Promise<void> {
    const socket = await this.connect(proxy);
    socket.write(cancelRequest(key));
    socket.resume();
    await closed(socket);
  }
}

/** A client without a driver. */
export interface RawClient {
  readonly messages: MessageStream;
  readonly key: BackendKey;
  /** ParameterStatus as it was reported. */
  readonly parameters: Map<string, string>;
}

/** The same, in front of the tests' own Postgres. */
export class PostgresProxies extends TestProxies {
  readonly system = inject('systemDatabase');
  override readonly role = {
    user: this.system.username,
    password: this.system.password,
    database: this.system.database,
  };
  override readonly compute: DialAddress = { kind: 'unix', path: this.system.path };
  /** Sessions that do not go through a proxy. */
  readonly direct = postgres({ ...this.system, max: 2, onnotice: () => {} });

  override async dispose(): Promise<void> {
    await super.dispose();
    await this.direct.end();
  }

  protected override makeVerifier(): Promise<string> {
    return learnVerifier(this.system);
  }

  uri(proxy: RunningProxy, endpoint = 'ep-a-pooler'): string {
    const login = `${this.role.user}:${this.role.password}`;
    return `postgresql://${login}@localhost:${proxy.port}/${this.role.database}?options=endpoint%3D${endpoint}`;
  }

  /** A client of `pg` that has not connected yet. */
  newClient(proxy: RunningProxy, options: pg.ClientConfig = {}): pg.Client {
    const client = new pg.Client({ host: '127.0.0.1', port: proxy.port, ...this.role, ...options });
    client.on('error', () => {});
    this.onCleanup(() => client.end().catch(() => {}));
    return client;
  }

  /** Pooled, unless the options say otherwise. */
  async client(proxy: RunningProxy, options: pg.ClientConfig = {}): Promise<pg.Client> {
    const client = this.newClient(proxy, { options: 'endpoint=ep-a-pooler', ...options });
    await client.connect();
    return client;
  }

  /** For what drivers hide. */
  async raw(
    proxy: RunningProxy,
    parameters: Record<string, string> = {},
    endpoint = 'ep-a-pooler',
  ): Promise<RawClient> {
    const messages = new MessageStream(await this.connect(proxy), 100_000_000);
    const { user, password, database } = this.role;
    messages.write(startupMessage(Object.entries({ user, database, ...parameters })));
    await messages.readMessage();
    messages.write(encodeMessage('p', cstring(`endpoint=${endpoint};${password}`)));
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
}

/** Not `once`: that rejects with the error which an abrupt end brings. */
export function closed(stream: ByteStream): Promise<void> {
  return new Promise((resolve) => {
    if (stream.closed) resolve();
    else stream.once('close', () => resolve());
  });
}

/** The next ErrorResponse, whatever comes before it. */
export async function readError(messages: MessageStream): Promise<ErrorReport> {
  for (;;) {
    const { type, body } = await messages.readMessage();
    if (type === 'E') return parseErrorResponse(body);
  }
}

/** The last message of a client's SCRAM exchange, after the server's first. */
export async function scramFinal(exchange: ClientExchange, serverFirst: string, password: string): Promise<string> {
  const [, salt = '', iterations = ''] = /,s=([^,]+),i=(\d+)$/.exec(serverFirst) ?? [];
  const facts = { salt: Buffer.from(salt, 'base64'), iterations: Number(iterations) };
  const keys = await deriveKeys(password, facts.salt, facts.iterations);
  return proveToServer(exchange, serverFirst, keys, facts)?.final ?? '';
}

function findPsql(): number {
  try {
    return Number(/ (\d+)/.exec(execFileSync('psql', ['--version'], { encoding: 'utf8' }))?.[1] ?? 0);
  } catch {
    return 0;
  }
}
