/** The embedded auth provider for tests: its parts, and a server that listens. */
import { Registry } from 'prom-client';
import { buildApp } from '../../src/api/app.ts';
import type { App } from '../../src/api/kit/app-type.ts';
import { noConsole } from '../../src/api/kit/console-files.ts';
import type { AuthProviderParts } from '../../src/auth-provider/core/parts.ts';
import type { Core } from '../../src/core/context.ts';
import type { Config } from '../../src/lib/config.ts';
import { createLogger } from '../../src/lib/log.ts';
import { authProviderParts } from '../../src/processes/auth-provider.ts';
import { makeCore } from './core.ts';
import { freePort } from './free-ports.ts';
import { machineOfTests } from './machine.ts';
import { testProviders } from './providers.ts';

export const stackSecret = 'the secret of the integration';

export function makeAuthProviderParts(core: Core, overrides: Partial<AuthProviderParts> = {}): AuthProviderParts {
  return { ...authProviderParts(core, { secretKey: 'a key for tests', stackSecret }), ...overrides };
}

export interface ProviderReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect
  readonly body: any;
}

export const basic = { authorization: `Basic ${Buffer.from(`catnap:${stackSecret}`).toString('base64')}` };

/** The headers of a project's key; `family` chooses the names. */
export function keyHeaders(
  access: 'client' | 'server' | 'admin',
  projectId: string,
  key?: string,
  family = 'stack',
): Record<string, string> {
  const names = { client: 'publishable-client-key', server: 'secret-server-key', admin: 'super-secret-admin-key' };
  return {
    [`x-${family}-access-type`]: access,
    [`x-${family}-project-id`]: projectId,
    ...(key === undefined ? {} : { [`x-${family}-${names[access]}`]: key }),
  };
}

export interface ProvisionedProject {
  readonly id: string;
  readonly adminKey: string;
  readonly publishableKey: string;
  readonly secretKey: string;
  readonly admin: Record<string, string>;
  readonly server: Record<string, string>;
  readonly client: Record<string, string>;
}

type Call = (
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE' | 'OPTIONS',
  path: string,
  headers?: Record<string, string>,
  body?: unknown,
) => Promise<ProviderReply>;

export interface TestAuthProvider {
  readonly app: App;
  readonly core: Core;
  readonly parts: AuthProviderParts;
  /** A request below `/stack/api/v1`; a 500 is never what a test expects. */
  readonly call: Call;
  provision(name?: string): Promise<ProvisionedProject>;
  close(): Promise<void>;
}

/** The whole HTTP application over a fresh database. */
export async function makeAuthProvider(
  overrides: Partial<AuthProviderParts> = {},
  config: Partial<Config> = {},
): Promise<TestAuthProvider> {
  const made = await makeCore(config);
  const { core } = made;
  const failures: string[] = [];
  const parts = makeAuthProviderParts(core, overrides);
  const app = await buildApp({
    core: { ...core, clock: parts.clock },
    config: { ...core.config, ...machineOfTests },
    clock: parts.clock,
    log: createLogger({ level: 'error', process: 'test', destination: { write: (line) => failures.push(line) } }),
    metrics: new Registry(),
    consoleFiles: noConsole,
    version: '0.0.0-test',
    keyUses: { record: () => {} },
    proxySockets: ['/nonexistent/proxy'],
    checkSettings: async () => null,
    listExtensions: async () => ({ extensions: [], note: null }),
    readLog: async () => [],
    sessions: { read: async () => [], signal: async () => false },
    readVerifiers: async () => [],
    authProvider: parts,
    providers: testProviders(),
    dumpSchema: async () => '',
    answerAgent: async () => ({ status: 202, headers: {}, body: '' }),
    awaitOperation: async () => ({ status: 'gone', error: null }),
  });
  const call: Call = async (method, path, headers = {}, body) => {
    const reply = await app.inject({
      method,
      url: path.startsWith('/stack') ? path : `/stack/api/v1${path}`,
      headers,
      ...(body === undefined ? {} : { payload: body as object }),
    });
    if (reply.statusCode === 500) throw new Error(`${method} ${path} -> 500: ${failures.at(-1)}`);
    const isJson = String(reply.headers['content-type']).startsWith('application/json');
    return { status: reply.statusCode, headers: reply.headers, body: isJson ? reply.json() : reply.body };
  };
  return {
    app,
    core,
    parts,
    call,
    provision: (name = 'test') => provision(call, name),
    close: async () => {
      await app.close();
      await made.close();
    },
  };
}

/** The same, listening: `url` is what SDKs are given as their base URL. */
export async function listenAuthProvider(
  overrides: Partial<AuthProviderParts> = {},
): Promise<TestAuthProvider & { readonly url: string }> {
  // The port is known before anything is built, because tokens name the public URL as their issuer.
  const port = await freePort();
  const provider = await makeAuthProvider(overrides, { publicUrl: `http://127.0.0.1:${port}`, httpPort: port });
  await provider.app.listen({ host: '127.0.0.1', port });
  return { ...provider, url: `http://127.0.0.1:${port}/stack` };
}

async function provision(call: Call, name: string): Promise<ProvisionedProject> {
  const { body } = await call('POST', '/integrations/neon/projects/provision', basic, { display_name: name });
  const admin = keyHeaders('admin', body.project_id, body.super_secret_admin_key);
  const { body: keys } = await call('POST', '/integrations/neon/api-keys', admin, {
    description: 'for the SDK',
    expires_at_millis: Date.now() + 3_650 * 86_400_000,
    has_publishable_client_key: true,
    has_secret_server_key: true,
    has_super_secret_admin_key: false,
  });
  return {
    id: body.project_id,
    adminKey: body.super_secret_admin_key,
    publishableKey: keys.publishable_client_key,
    secretKey: keys.secret_server_key,
    admin,
    server: keyHeaders('server', body.project_id, keys.secret_server_key),
    client: keyHeaders('client', body.project_id, keys.publishable_client_key),
  };
}
