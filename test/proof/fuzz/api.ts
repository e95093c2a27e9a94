/**
 * Requests to the whole API in this process: a real system database, the fake driver, and the queue of operations run
 * dry between the requests. One request after the other, so that a seed repeats itself, and sometimes several at once.
 */
import { createProviders } from '../../../src/auth-client/providers.ts';
import { FakeDriver } from '../../../src/compute/fake/fake-driver.ts';
import type { Core } from '../../../src/core/context.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { jobRegistry } from '../../../src/operations/registry.ts';
import { stackSecret } from '../../helpers/auth-provider.ts';
import { makeApi, type TestApi } from '../../helpers/contract.ts';
import { drain } from '../../helpers/drain.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { Random } from '../random.ts';
import { type Callers, headersFor, makeStackKeys } from './callers.ts';
import { createProgress, Findings } from './findings.ts';
import { judge, parse, show } from './judge.ts';
import { Living } from './living.ts';
import { heapAfterCollection } from './memory.ts';
import { collectUndocumented, documented, type Operation, resolverOf } from './operations.ts';
import { type FuzzRequest, makeRequest } from './request.ts';

const drainEvery = 20;
const stackKeysEvery = 500;
const projectsMax = 8;
/** A reply that takes longer is one that never comes. */
const replyMs = 120_000;

export interface ApiFuzzResult {
  readonly requests: number;
  readonly statuses: ReadonlyMap<number, number>;
  readonly kinds: ReadonlyMap<string, number>;
  readonly operations: number;
  readonly findings: readonly string[];
  readonly heapAfterWarmUp: number;
  readonly heapAtEnd: number;
}

export interface ApiFuzzOptions {
  readonly seed: number;
  readonly count: number;
  readonly minutes: number;
}

export class ApiFuzz {
  readonly api: TestApi;
  readonly #random: Random;
  readonly #living = new Living();
  readonly #callers: Callers;
  readonly #operations: readonly Operation[];
  readonly #making: Parameters<typeof makeRequest>[1];
  readonly #drain: () => Promise<void>;
  readonly #log: string[];
  readonly #findings = new Findings();
  readonly #statuses = new Map<number, number>();
  readonly #kinds = new Map<string, number>();
  #requests = 0;

  private constructor(world: World, random: Random) {
    this.api = world.api;
    this.#random = random;
    this.#drain = world.drain;
    this.#log = world.log;
    this.#operations = world.operations;
    const { token, strangerToken } = world.api;
    this.#callers = { token, strangerToken, stack: null };
    this.#making = {
      random,
      resolve: resolverOf(world.document),
      living: this.#living,
      headersFor: (operation, chance) => headersFor(this.#callers, operation, chance),
    };
  }

  static async create(seed: number): Promise<ApiFuzz> {
    const fuzz = new ApiFuzz(await makeWorld(), new Random(seed));
    await fuzz.#settleIn();
    return fuzz;
  }

  async run({ count, minutes, seed }: ApiFuzzOptions): Promise<ApiFuzzResult> {
    const endsAt = performance.now() + minutes * 60_000;
    const report = createProgress('fuzz api');
    const warmUp = Math.min(5_000, Math.floor(count / 4));
    let heapAfterWarmUp = 0;
    while (this.#requests < count && performance.now() < endsAt) {
      const before = this.#requests;
      await this.#sendSome();
      const passed = (every: number) => Math.floor(before / every) < Math.floor(this.#requests / every);
      if (passed(drainEvery)) await this.#settle();
      if (passed(stackKeysEvery)) await this.#renewStackKeys();
      if (before < warmUp && this.#requests >= warmUp) heapAfterWarmUp = heapAfterCollection();
      report(() => `${this.#requests} of ${count}, ${this.#findings.count} findings, seed ${seed}`);
    }
    await this.#settle();
    return {
      requests: this.#requests,
      statuses: this.#statuses,
      kinds: this.#kinds,
      operations: this.#operations.length,
      findings: this.#findings.list(),
      heapAfterWarmUp,
      heapAtEnd: heapAfterCollection(),
    };
  }

  async close(): Promise<void> {
    await this.api.close();
  }

  async #settleIn(): Promise<void> {
    const [organization] = (await this.api.call('GET', '/api/v2/users/me/organizations')).json().organizations;
    const me = (await this.api.call('GET', '/api/v2/users/me')).json();
    this.#living.keep({ org_id: organization.id, member_id: me.id, region_id: 'local', auth_provider: 'stack' });
    await this.#renewStackKeys();
    await this.#keepProjects();
  }

  async #renewStackKeys(): Promise<void> {
    const post = async (path: string, headers: Readonly<Record<string, string>>, body: object) =>
      (await this.api.app.inject({ method: 'POST', url: `/stack/api/v1${path}`, headers, payload: body })).json();
    this.#callers.stack = await makeStackKeys(post, this.#random);
  }

  /** One request, or several at once about the same things. */
  async #sendSome(): Promise<void> {
    const size = this.#random.chance(0.05) ? this.#random.between(2, 6) : 1;
    const requests = Array.from({ length: size }, () => makeRequest(this.#chooseOperation(), this.#making));
    await Promise.all(requests.map((request) => this.#send(request)));
  }

  /** The management API more often than the rest, and what makes things more often than what looks at them. */
  #chooseOperation(): Operation {
    const { random } = this.#making;
    const isMain = random.chance(0.75);
    const isMaking = isMain && random.chance(0.3);
    const fits = ({ path, method }: Operation) =>
      path.startsWith('/api/v2') === isMain && (!isMaking || (method === 'POST' && !/\/auth|purge|recover/.test(path)));
    return random.pick(this.#operations.filter(fits));
  }

  async #send(request: FuzzRequest): Promise<void> {
    this.#requests++;
    this.#kinds.set(request.kind, (this.#kinds.get(request.kind) ?? 0) + 1);
    const { method, url, headers, payload } = request;
    const name = `${request.operation.method} ${request.operation.path}`;
    // AbortSignal.timeout would keep request and reply until its time is over, and the heap would measure just that.
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(new Error(`no reply within ${replyMs} ms`)), replyMs);
    try {
      const reply = await this.api.app.inject({
        method: method as 'GET',
        url,
        headers,
        remoteAddress: `10.${this.#random.below(250)}.${this.#random.below(250)}.1`,
        signal: late.signal,
        ...(payload === undefined ? {} : { payload }),
      });
      const status = reply.statusCode;
      this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + 1);
      const seen = { status, contentType: String(reply.headers['content-type'] ?? ''), text: reply.body };
      const wrong = judge(request, seen);
      if (wrong !== null) {
        const cause = status >= 500 ? `\n  ${this.#log.at(-1)?.slice(0, 1_500)}` : '';
        this.#findings.add(`${name}: ${wrong}`, `${show(request)}\n  ${reply.body.slice(0, 500)}${cause}`);
      }
      if (status < 300) this.#living.learn(method, request.operation.path, request.values, parse(seen));
    } catch (error) {
      this.#findings.add(`${name}: no reply`, `${show(request)}\n  ${error}`);
    } finally {
      clearTimeout(timer);
    }
    this.#log.length = 0;
  }

  /** Every operation that the requests have begun comes to its end; then there are projects again, and not too many. */
  async #settle(): Promise<void> {
    try {
      await this.#drain();
    } catch (error) {
      const left = await this.api.core.database.sql`
        select * from operations
         where status in ('scheduling', 'running', 'failed', 'cancelling') limit 5`;
      this.#findings.add(
        `operations do not end: ${error}`,
        `after ${this.#requests} requests: ${JSON.stringify(left)}`,
      );
    }
    await this.#keepProjects();
  }

  async #keepProjects(): Promise<void> {
    const call = (method: 'POST' | 'PATCH' | 'DELETE', url: string, payload?: object) =>
      this.api.app.inject({
        method,
        url: `/api/v2${url}`,
        headers: { authorization: `Bearer ${this.#callers.token}` },
        ...(payload === undefined ? {} : { payload }),
      });
    while (this.#living.projectCount > projectsMax) {
      const id = this.#living.oldestProject ?? '';
      this.#living.forgetProject(id);
      await call('DELETE', `/projects/${id}`);
      await call('POST', `/projects/${id}/purge`);
    }
    while (this.#living.projectCount < 2) {
      await call('PATCH', `/organizations/${this.#living.choose(this.#random).org_id}`, { plan: 'scale' });
      const reply = await call('POST', '/projects', { project: {} });
      if (reply.statusCode !== 201) throw new Error(`no project can be made: ${reply.body}`);
      this.#living.learn('POST', '/api/v2/projects', {}, reply.json());
      await this.#drain();
    }
  }
}

interface World {
  readonly api: TestApi;
  readonly document: Parameters<typeof resolverOf>[0];
  readonly operations: readonly Operation[];
  readonly log: string[];
  drain(): Promise<void>;
}

/** The API, listening too: it reaches its own auth provider over HTTP, as the real one does. */
async function makeWorld(): Promise<World> {
  const port = await freePort();
  const baseUrl = `http://127.0.0.1:${port}/stack`;
  const providers = createProviders({
    embedded: { baseUrl, clientId: 'catnap', clientSecret: stackSecret },
    embeddedPublicUrl: baseUrl,
    external: null,
  });
  const driver = new FakeDriver();
  const log: string[] = [];
  const undocumented: Operation[] = [];
  const drainQueue = (core: Core) => drain(core, driver, jobRegistry, providers);
  const config = { rateLimitPerMinute: undefined, publicUrl: `http://127.0.0.1:${port}` };
  const api = await makeApi(
    config,
    undefined,
    (core) => ({
      providers,
      log: createLogger({ level: 'error', process: 'test', destination: { write: (line) => void log.push(line) } }),
      awaitOperation: async (id) => {
        await drainQueue(core);
        const [row] = await core.database.sql`select status, error from operations where id = ${id}`;
        return { status: row?.status ?? 'gone', error: row?.error ?? null };
      },
    }),
    (app) => collectUndocumented(app, undocumented),
  );
  await api.app.listen({ host: '127.0.0.1', port });
  const document = (await api.app.inject('/api/v2/openapi.json')).json();
  const offered = documented(document).filter(({ path }) => !path.endsWith('/events'));
  return { api, document, operations: [...offered, ...undocumented], log, drain: () => drainQueue(api.core) };
}
