/** What one episode works on: an installation, tenants with writers on every transport, and what has gone wrong. */
import pg from 'pg';
import { eventually } from '../../helpers/eventually.ts';
import type { Reply } from '../../helpers/program.ts';
import { ask } from '../../helpers/query.ts';
import type { Installation } from './configurations.ts';
import { ProcessTable } from './process-table.ts';
import { transportNames } from './transports.ts';
import { Writer } from './writer.ts';

export interface Tenant {
  readonly projectId: string;
  readonly branchId: string;
  readonly endpointId: string;
  readonly uri: string;
  readonly writers: readonly Writer[];
}

const finalStates = ['finished', 'error', 'cancelled', 'skipped'];
/** A request that takes longer is worth a line in the story. */
const slowMs = 20_000;

export class World {
  readonly installation: Installation;
  readonly tenants: Tenant[] = [];
  /** What must never happen, and did. */
  readonly violations: string[] = [];
  rowsLost = 0;
  rowsDoubled = 0;
  /** What happened until now, for whoever reads a failure. */
  readonly story: string[] = [];
  operationCount = 0;
  /** Requests to the API whose connection was refused or broke. */
  brokenCalls = 0;
  /** Projects that random work leaves alone, besides those of tenants. */
  readonly spared = new Set<string>();

  constructor(installation: Installation) {
    this.installation = installation;
  }

  get program() {
    return this.installation.program;
  }

  get home(): string {
    return this.program.home.path;
  }

  get writers(): Writer[] {
    return this.tenants.flatMap(({ writers }) => writers);
  }

  processes(): ProcessTable {
    return new ProcessTable(this.home);
  }

  tell(event: string): void {
    this.story.push(event);
  }

  /**
   * What the API answers, or null if it could not be asked or was short of something. A reply that is neither is a
   * violation: 500 is never right, and a reply that the contract does not know is not either.
   */
  async call(method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<Reply | null> {
    this.operationCount++;
    const slow = setTimeout(() => this.tell(`no answer to ${method} ${path} for ${slowMs} ms`), slowMs);
    try {
      const reply = await this.program.api(method, path, body, headers);
      if (reply.status === 503 || reply.status === 507) return null;
      if (reply.status >= 500) this.#complain(`${method} ${path} answered ${reply.status}`, reply.body);
      return reply;
    } catch (error) {
      if (error instanceof TypeError || error instanceof DOMException) {
        this.brokenCalls++;
        this.tell(`no answer to ${method} ${path}: ${error.cause ?? error}`);
        return null;
      }
      this.#complain(`${method} ${path}`, String(error));
      return null;
    } finally {
      clearTimeout(slow);
    }
  }

  #complain(what: string, detail: unknown): void {
    this.violations.push(`${what}: ${JSON.stringify(detail)}`);
  }

  /** Retried until there is an answer. */
  async get<T>(path: string): Promise<T> {
    return eventually(async () => {
      const reply = await this.call('GET', path);
      if (reply?.status !== 200) throw new Error(`GET ${path} -> ${reply?.status ?? 'no answer'}`);
      return reply.body as T;
    });
  }

  async projectIds(): Promise<string[]> {
    const { projects } = await this.get<{ projects: { id: string }[] }>('/projects?limit=400');
    return projects.map(({ id }) => id);
  }

  async endpointsOf(
    projectId: string,
  ): Promise<{ id: string; branch_id: string; type: string; current_state: string }[]> {
    const reply = await this.call('GET', `/projects/${projectId}/endpoints`);
    if (reply === null) throw new Error('the API did not answer');
    return reply.body.endpoints ?? [];
  }

  async settle(): Promise<void> {
    for (const projectId of await this.projectIds()) {
      await eventually(
        async () => {
          const reply = await this.call('GET', `/projects/${projectId}/operations?limit=100`);
          if (reply?.status === 404) return;
          const all: { status: string }[] = reply?.body.operations ?? [{ status: 'unknown' }];
          const open = all.filter(({ status }) => !finalStates.includes(status));
          if (open.length > 0) throw new Error(`operations do not end: ${JSON.stringify(open)}`);
        },
        { everyMs: 100 },
      );
    }
  }

  async addTenant(name: string): Promise<Tenant> {
    const { body } = await this.program.api('POST', '/projects', { project: { name } });
    const place = {
      uri: body.connection_uris[0].connection_uri as string,
      endpointId: body.endpoints[0].id as string,
      httpPort: this.program.httpPort,
    };
    await this.program.settle(body.project.id);
    // No key: a row that is written twice must be seen twice.
    await ask(place.uri, 'create table written (writer text, number int)');
    await ask(place.uri, 'create index on written (writer, number)');
    const endpoint = { branch_id: body.branch.id, type: 'read_only' };
    await this.program.api('POST', `/projects/${body.project.id}/endpoints`, { endpoint });
    await this.program.settle(body.project.id);
    const writers = transportNames.map((transport) => new Writer(`${name} ${transport}`, transport, place));
    const tenant = { projectId: body.project.id, branchId: body.branch.id, ...place, writers };
    this.tenants.push(tenant);
    for (const writer of writers) writer.start();
    return tenant;
  }

  async stopWriters(): Promise<void> {
    await Promise.all(this.writers.map((writer) => writer.stop()));
  }
}

export interface WrittenRow {
  readonly writer: string;
  readonly number: number;
  readonly copies: number;
}

/** Of each writer, rows above the number that is given for it. */
export async function readWritten(uri: string, above: ReadonlyMap<string, number>): Promise<WrittenRow[]> {
  const client = new pg.Client({ connectionString: uri, connectionTimeoutMillis: 20_000, query_timeout: 30_000 });
  client.on('error', () => {});
  await client.connect();
  try {
    const { rows } = await client.query(
      `select writer, number, count(*)::int as copies from written
       join unnest($1::text[], $2::int[]) as known (name, above) on name = writer and number > above
       group by writer, number`,
      [[...above.keys()], [...above.values()]],
    );
    return rows;
  } finally {
    client.end().catch(() => undefined);
  }
}
