/**
 * Pooled clients whose transactions are of several statements, in a project that nothing else touches: whatever breaks
 * one of them is the fault of a process of Catnap's. A client that is sent away before its transaction begins comes
 * again; what breaks off a transaction that has begun is counted.
 */
import pg from 'pg';
import { eventually, thinkTime } from '../../helpers/eventually.ts';
import { ask } from '../../helpers/query.ts';
import type { World } from '../chaos/world.ts';

const rowsOfEach = 2;
const betweenMs = 25;

export class PooledLoad {
  /** Transactions that had begun, and whose client lost its connection. */
  brokenOff = 0;
  /** Those of them that were broken off during a rolling restart. */
  brokenOffByRestarts = 0;
  committed = 0;
  /** Clients that were sent away between two transactions. */
  sentAway = 0;
  readonly #uri: string;
  readonly #pooledUri: string;
  readonly #numbers = new Set<string>();
  readonly #stop = new AbortController();
  #done: Promise<unknown> = Promise.resolve();

  private constructor(uri: string, endpointId: string) {
    this.#uri = uri;
    this.#pooledUri = uri.replace(endpointId, `${endpointId}-pooler`);
  }

  static async start(world: World, clients: number): Promise<PooledLoad> {
    const { body } = await world.program.api('POST', '/projects', { project: { name: 'pooled' } });
    world.spared.add(body.project.id);
    const load = new PooledLoad(body.connection_uris[0].connection_uri, body.endpoints[0].id);
    await world.program.settle(body.project.id);
    await ask(load.#uri, 'create table written (transaction text)');
    load.#done = Promise.all(Array.from({ length: clients }, (_, number) => load.#work(`client ${number}`)));
    return load;
  }

  /** Resolves when every client has had time to notice what happened before. */
  async untilServed(): Promise<void> {
    const before = this.committed;
    await eventually(() => {
      if (this.committed < before + 20) throw new Error('pooled transactions are not served');
    });
  }

  /** Ends the clients, and says what is wrong with what they have left. */
  async stop(): Promise<string[]> {
    this.#stop.abort();
    await this.#done;
    const text = await eventually(() =>
      ask(
        this.#uri,
        `select coalesce(json_object_agg(transaction, count), '{}')::text from (
           select transaction, count(*) from written group by transaction) as found`,
      ),
    );
    const found = new Map(Object.entries(JSON.parse(text) as Record<string, number>));
    const lost = [...this.#numbers].filter((name) => !found.has(name));
    const torn = [...found].filter(([, count]) => count !== rowsOfEach);
    return [
      ...lost.map((name) => `the transaction ${name} was committed and is gone`),
      ...torn.map(([name, count]) => `the transaction ${name} has ${count} rows`),
    ];
  }

  async #work(name: string): Promise<void> {
    for (let number = 0; !this.#stop.signal.aborted; number++) {
      const client = new pg.Client({ connectionString: this.#pooledUri, connectionTimeoutMillis: 60_000 });
      client.on('error', () => {});
      try {
        await client.connect();
        for (; !this.#stop.signal.aborted; number++) await this.#transact(client, `${name}, ${number}`);
      } catch {
        this.sentAway++;
        await thinkTime(betweenMs);
      } finally {
        client.end().catch(() => {});
      }
    }
  }

  /** Rejects when the client has to connect again. */
  async #transact(client: pg.Client, transaction: string): Promise<void> {
    await client.query('begin');
    try {
      for (let row = 0; row < rowsOfEach; row++) {
        await client.query('insert into written values ($1)', [transaction]);
        await thinkTime(betweenMs);
      }
      await client.query('commit');
      this.committed++;
      this.#numbers.add(transaction);
    } catch (error) {
      this.brokenOff++;
      throw error;
    }
    await thinkTime(betweenMs);
  }
}
