/**
 * The referee for API replies: the OpenAPI file that the npm package `@neondatabase/api-client` ships. Every reply in
 * every test goes through `validateReply`, so a required key that we leave out fails the test that saw it.
 */
import { createRequire } from 'node:module';
import { isDeepStrictEqual } from 'node:util';
import { Ajv, type ValidateFunction } from 'ajv';
import type { FormatsPlugin } from 'ajv-formats';
import type { InjectOptions, LightMyRequestResponse } from 'fastify';
import { publishedOperations, readPublishedFile } from '../../scripts/published-api.mjs';
import { buildApp } from '../../src/api/app.ts';
import type { App } from '../../src/api/kit/app-type.ts';
import { noConsole } from '../../src/api/kit/console-files.ts';
import type { ApiParts } from '../../src/api/kit/parts.ts';
import { FakeDriver } from '../../src/compute/fake/fake-driver.ts';
import type { Core } from '../../src/core/context.ts';
import type { Clock } from '../../src/lib/clock.ts';
import type { Config } from '../../src/lib/config.ts';
import { createLogger } from '../../src/lib/log.ts';
import { ProcessRegistry } from '../../src/lib/process-metrics.ts';
import { makeAuthProviderParts } from './auth-provider.ts';
import { makeCore, type TestCore } from './core.ts';
import { machineOfTests } from './machine.ts';
import { testProviders } from './providers.ts';

const prefix = '/api/v2';
const documentId = 'published';
const require = createRequire(import.meta.url);

/** What we serve and the published file does not have: our own pages, and aliases that older clients call. */
const additions: readonly (readonly [method: string, path: string])[] = [
  ['GET', '/openapi.json'],
  ['GET', '/docs'],
  ['POST', '/projects/{project_id}/branches/{branch_id}/set_as_primary'],
  ['POST', '/projects/{project_id}/branches/{branch_id}/roles/{role_name}/reveal_password'],
  ['GET', '/projects/{project_id}/branches/{branch_id}/role_verifiers'],
  ['PATCH', '/organizations/{org_id}'],
  ['GET', '/projects/{project_id}/endpoints/{endpoint_id}/metrics'],
  ['GET', '/projects/{project_id}/endpoints/{endpoint_id}/logs'],
  ['GET', '/projects/{project_id}/branches/{branch_id}/history'],
  ['GET', '/events'],
  ['GET', '/outbox'],
  ['GET', '/deleted'],
  ['POST', '/projects/{project_id}/purge'],
  ['POST', '/projects/{project_id}/branches/{branch_id}/purge'],
  ['GET', '/backup'],
  ['GET', '/projects/{project_id}/endpoints/{endpoint_id}/sessions'],
  ['POST', '/projects/{project_id}/endpoints/{endpoint_id}/sessions/{session_id}/cancel'],
  ['POST', '/projects/{project_id}/endpoints/{endpoint_id}/sessions/{session_id}/terminate'],
  ['GET', '/projects/{project_id}/extensions'],
  ['GET', '/projects/{project_id}/saved_queries'],
  ['POST', '/projects/{project_id}/saved_queries'],
  ['PATCH', '/projects/{project_id}/saved_queries/{saved_query_id}'],
  ['DELETE', '/projects/{project_id}/saved_queries/{saved_query_id}'],
  ['GET', '/projects/{project_id}/webhooks'],
  ['POST', '/projects/{project_id}/webhooks'],
  ['PATCH', '/projects/{project_id}/webhooks/{webhook_id}'],
  ['DELETE', '/projects/{project_id}/webhooks/{webhook_id}'],
  ['GET', '/projects/{project_id}/webhooks/{webhook_id}/deliveries'],
  ['POST', '/projects/{project_id}/webhooks/{webhook_id}/deliveries/{delivery_id}/replay'],
];

interface OpenApiReply {
  readonly $ref?: string;
  readonly content?: Readonly<Record<string, { readonly schema?: object }>>;
}
interface OpenApiOperation {
  readonly responses: Readonly<Record<string, OpenApiReply>>;
}
interface OpenApiFile {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>;
}

const file: OpenApiFile = readPublishedFile();
const newer = publishedOperations(file).filter(
  ({ method, path }) => file.paths[path]?.[method.toLowerCase()] === undefined,
);
const ajv = createAjv();
const compiled = new Map<string, ValidateFunction>();

/** Throws an error that names the route, the key and what is wrong with it. */
export function validateReply(method: string, url: string, status: number, body: unknown): void {
  const path = new URL(url, 'http://localhost').pathname;
  if (!path.startsWith(`${prefix}/`)) return;
  const inner = path.slice(prefix.length).replace(/\/+$/, '');
  const where = `${method} ${inner} -> ${status}`;
  if (method === 'HEAD') return;
  if (status >= 400) {
    check(pointer('components', 'schemas', 'GeneralError'), body, where);
    return;
  }
  const template = findTemplate(method, inner, Object.keys(file.paths));
  if (template === undefined) {
    const isAddition = additions.some(([verb, path]) => verb === method && matches(path, inner));
    if (!isAddition && !isNewer(method, inner))
      throw new Error(`${where}: neither in the published API nor in the list of additions`);
    return;
  }
  const responses = file.paths[template]?.[method.toLowerCase()]?.responses ?? {};
  if (responses[status] === undefined) {
    const published = Object.keys(responses).join(', ');
    throw new Error(`${where}: the published API has no such status here, only ${published}`);
  }
  check(replySchema(template, method.toLowerCase(), String(status), responses[status]), body, where);
}

/** Whether only the SDK knows the operation: it has no schema, so the test of the route checks the reply. */
function isNewer(method: string, path: string): boolean {
  return newer.some((operation) => operation.method === method && matches(operation.path, path));
}

export interface TestApi extends TestCore {
  readonly app: App;
  readonly parts: ApiParts;
  /** One request with a key (the caller's unless said otherwise); the reply is validated. */
  call(method: Method, path: string, options?: CallOptions): Promise<LightMyRequestResponse>;
}

type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS';

export interface CallOptions {
  readonly body?: object;
  /** Null sends no key. */
  readonly token?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The whole API over a fresh database, under the contract. */
export async function makeApi(
  overrides: Partial<Config> = {},
  clock?: Clock,
  more: (core: Core) => Partial<ApiParts> = () => ({}),
  prepare: (app: App) => void = () => {},
): Promise<TestApi> {
  const made = await makeCore(overrides);
  const core = clock === undefined ? made.core : { ...made.core, clock };
  const failures: string[] = [];
  const parts: ApiParts = {
    core,
    config: { ...core.config, ...machineOfTests },
    clock: core.clock,
    log: createLogger({ level: 'error', process: 'test', destination: { write: (line) => failures.push(line) } }),
    metrics: new ProcessRegistry(),
    version: '0.0.0-test',
    consoleFiles: noConsole,
    dumpSchema: async ({ branchName, database }) => `-- ${database}\nCREATE TABLE ${branchName} ();\n`,
    answerAgent: async (message) => (await import('../../src/cli/mcp/served.ts')).answerMessage(message),
    keyUses: { record: () => {} },
    authProvider: makeAuthProviderParts(core),
    proxySockets: ['/nonexistent/proxy'],
    checkSettings: (pgVersion, settings) => new FakeDriver().checkSettings(pgVersion, settings),
    listExtensions: (pgVersion) => new FakeDriver().listExtensions(pgVersion),
    readLog: async () => [],
    sessions: { read: async () => [], signal: async () => false },
    readVerifiers: async () => [],
    providers: testProviders(),
    awaitOperation: async () => {
      throw new Error('no worker runs in this test');
    },
    ...more(core),
  };
  const app = await buildApp(parts, (empty) => {
    watchReplies(empty);
    prepare(empty);
  });
  const inject = contractInject(app);
  return {
    ...made,
    core,
    app,
    parts,
    call: async (method, path, { body, token = made.token, headers } = {}) => {
      const reply = await inject({
        method,
        url: path,
        headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...headers },
        ...(body === undefined ? {} : { payload: body }),
      });
      // A defect is never what a test expects; the reply hides the cause, so the log is shown.
      if (reply.statusCode === 500) throw new Error(`${method} ${path} -> 500: ${failures.at(-1)}`);
      return reply;
    },
    close: async () => {
      await app.close();
      await made.close();
    },
  };
}

/** `app.inject`, with each reply validated. */
export function contractInject(app: App): (request: InjectOptions) => Promise<LightMyRequestResponse> {
  return async (request) => {
    const response = await app.inject(request);
    const type = String(response.headers['content-type'] ?? '');
    const body: unknown = type.startsWith('application/json') && response.body !== '' ? response.json() : undefined;
    const url = typeof request.url === 'string' ? request.url : (request.url?.pathname ?? '/');
    validateReply(request.method ?? 'GET', url, response.statusCode, body);
    return response;
  };
}

/**
 * For `buildApp`'s `prepare`: fails a request whose reply the serialiser changed. It drops keys that a schema does not
 * list and turns null into an empty string, both without a word.
 */
export function watchReplies(app: App): void {
  const handed = new WeakMap<object, unknown>();
  app.addHook('preSerialization', async (request, _reply, payload) => {
    handed.set(request, payload);
    return payload;
  });
  app.addHook('onSend', async (request, _reply, sent) => {
    const payload = handed.get(request);
    handed.delete(request);
    if (payload === undefined || typeof sent !== 'string') return sent;
    const expected: unknown = JSON.parse(JSON.stringify(payload));
    if (!isDeepStrictEqual(JSON.parse(sent), expected)) {
      throw new Error(`the serialiser changed the reply to ${request.method} ${request.url}: ${sent}`);
    }
    return sent;
  });
}

function check(schemaPointer: string | undefined, body: unknown, where: string): void {
  if (schemaPointer === undefined) return;
  const validate = compiled.get(schemaPointer) ?? ajv.compile({ $ref: `${documentId}#${schemaPointer}` });
  compiled.set(schemaPointer, validate);
  if (validate(body)) return;
  const reasons = (validate.errors ?? []).map((error) => {
    const allowed = 'allowedValues' in error.params ? ` (${error.params.allowedValues.join(', ')})` : '';
    return `${error.instancePath || 'the reply'} ${error.message}${allowed}`;
  });
  throw new Error(`${where}: ${reasons.join('; ')}\n${JSON.stringify(body, null, 1)?.slice(0, 2000)}`);
}

function replySchema(path: string, method: string, status: string, reply: OpenApiReply): string | undefined {
  if (reply.$ref !== undefined)
    return pointer(...reply.$ref.slice(2).split('/'), 'content', 'application/json', 'schema');
  if (reply.content?.['application/json']?.schema === undefined) return undefined;
  return pointer('paths', path, method, 'responses', status, 'content', 'application/json', 'schema');
}

const pointer = (...names: string[]) =>
  names.map((name) => `/${encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'))}`).join('');

/** Literal segments win over parameters, as in every router: `/projects/shared` is not a project. */
function findTemplate(method: string, path: string, templates: readonly string[]): string | undefined {
  const parameters = (template: string) => template.split('{').length;
  return templates
    .filter((template) => file.paths[template]?.[method.toLowerCase()] !== undefined && matches(template, path))
    .sort((a, b) => parameters(a) - parameters(b))[0];
}

function matches(template: string, path: string): boolean {
  const expected = template.split('/');
  const actual = path.split('/');
  return (
    expected.length === actual.length &&
    expected.every((part, index) => (part.startsWith('{') ? actual[index] !== '' : part === actual[index]))
  );
}

function createAjv(): Ajv {
  const instance = new Ajv({ strict: false, allErrors: true });
  const addFormats = require('ajv-formats') as FormatsPlugin;
  addFormats(instance);
  for (const name of ['int', 'int32', 'int64', 'uint64']) {
    instance.addFormat(name, { type: 'number', validate: Number.isSafeInteger });
  }
  instance.addSchema(file, documentId);
  return instance;
}
