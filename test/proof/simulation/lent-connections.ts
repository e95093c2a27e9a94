/**
 * Connections to the system database of one ground. The one that came back last is lent first, so that few servers do
 * most of the work: each has to prepare a statement by itself, and what it has cached is cold after a while.
 */
import { readFileSync } from 'node:fs';
import { connect, type DatabaseOptions, schemaName } from '../../../src/db/client.ts';

/** Before Catnap's schema, and before the functions of Postgres: its `now()` is the one that statements find. */
export const timeSchema = 'simulated';

export type Client = ReturnType<typeof connect>;

interface Row {
  readonly id?: unknown;
  readonly lease?: unknown;
}

/** What the driver's statements are, beyond what its types say. */
export interface Statement extends Promise<readonly Row[]> {
  executed: boolean;
  readonly strings: readonly string[];
  readonly handler: (statement: Statement) => void;
  resolve: (rows: Row[]) => void;
  readonly reject: (error: Error) => void;
  handle: () => Promise<void>;
  /** Of the connection that it was sent over. */
  readonly state: { readonly pid: number } | null;
}

export function openClient(options: DatabaseOptions, name: string): Client {
  const client = connect(options, 1, name, { idleSeconds: 0, waitForDisk: false });
  Object.assign(client.options.connection, {
    search_path: `${timeSchema}, ${schemaName}, pg_catalog`,
    statement_timeout: 0,
    // A schedule may hold a transaction open while a busy machine looks elsewhere.
    idle_in_transaction_session_timeout: 0,
    // The tables hold a few rows, whatever the parameters are: to plan a statement takes longer than to carry it out.
    plan_cache_mode: 'force_generic_plan',
  });
  return client;
}

export interface Lent {
  readonly client: Client;
  /** Sends a statement that was made with another client of the same database. */
  readonly send: (statement: Statement) => void;
}

export class LentConnections {
  /** Statements are made with it, and those of the schedule itself are sent over it. */
  readonly control: Client;
  /** Of the servers that have worked for anybody. */
  readonly pids = new Set<number>();
  readonly #options: DatabaseOptions;
  readonly #all: Client[] = [];
  readonly #free: Lent[] = [];

  constructor(options: DatabaseOptions) {
    this.#options = options;
    this.control = openClient(options, 'control');
  }

  take(): Lent {
    return this.#free.pop() ?? this.#open();
  }

  giveBack(lent: Lent): void {
    this.#free.push(lent);
  }

  remember({ state }: Statement): void {
    if (state !== null) this.pids.add(state.pid);
  }

  /** Whether each of these servers waits for what another one of this ground holds: other locks last for a moment. */
  async areLocked(pids: readonly number[]): Promise<boolean> {
    if (!pids.every(isAsleep)) return false;
    const [row] = await this.control<{ areLocked: boolean }[]>`
      select bool_and(pg_blocking_pids(pid) && ${[...this.pids]}::int[]) as are_locked
      from unnest(${[...pids]}::int[]) as pid`;
    return row?.areLocked ?? false;
  }

  #open(): Lent {
    const client = openClient(this.#options, 'actor');
    this.#all.push(client);
    // Never awaited, so never sent.
    const { handler } = client`select` as unknown as Statement;
    return { client, send: handler };
  }

  async close(): Promise<void> {
    await Promise.all([this.control, ...this.#all].map((client) => client.end({ timeout: 5 })));
  }
}

/** A server that is at work, or only waits for a processor, waits for no lock: that is cheaper to see than to ask. */
function isAsleep(pid: number): boolean {
  if (process.platform !== 'linux') return true;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat[stat.lastIndexOf(')') + 2] === 'S';
  } catch {
    return false;
  }
}
