/**
 * The server connections of one endpoint, role and database (and password, and startup settings), and the queue of
 * those who want one. Connections are opened as they are needed, within the endpoint's budget, and given back after
 * each transaction.
 */
import { CatnapError, errorText } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { ComputeLogin } from '../compute/login.ts';
import { ComputeRefusal } from '../compute/session.ts';
import type { ProxyLimits } from '../kit/limits.ts';
import type { BudgetMember, EndpointBudget } from '../permits/budget.ts';
import type { Greeting } from './greeting.ts';
import { changeSql, type Tracked } from './parameters.ts';
import { ServerConnection, type ServerUser } from './server-connection.ts';
import { StatementTable } from './statements.ts';
import { WaitingLine } from './waiting-line.ts';

/** Somebody who wants a server. */
export interface Waiter extends ServerUser {
  /** The settings that the server must have. */
  readonly values: Tracked;
  onServer(server: ServerConnection): void;
  onNoServer(error: unknown): void;
}

export interface PoolOptions {
  readonly endpointId: string;
  /** What it is called in the budget. */
  readonly name: string;
  readonly budget: EndpointBudget;
  /** Wakes the endpoint if need be, and logs in there. */
  readonly connect: (signal: AbortSignal) => Promise<ComputeLogin>;
  readonly limits: ProxyLimits;
  readonly log: Logger;
}

/** Logins at once: a burst of clients is served sooner by a few connections than by as many as there are clients. */
const openingMax = 4;
/** Connections of one pool until the endpoint has said how many it takes. */
const unknownLimit = 20;
/** So many are opened as soon as somebody waits; more than this only help where transactions wait for something. */
const eagerServers = 16;
/** Then one must have waited this long: a short transaction comes sooner to its turn than to a login. */
const growAfterMs = 100;
const fullRetryMs = 100;
const tooManyState = '53300';

export class Pool implements BudgetMember {
  readonly statements = new StatementTable();
  readonly greetings = new Map<string, Greeting>();
  readonly endpointId: string;
  readonly name: string;
  /** Clients that may come back for a server. */
  clients = 0;
  readonly #options: PoolOptions;
  readonly #idle: ServerConnection[] = [];
  readonly #all = new Set<ServerConnection>();
  readonly #waiting = new WaitingLine<Waiter>();
  readonly #abort = new AbortController();
  #requested = 0;
  #opening = 0;
  #patience: NodeJS.Timeout | null = null;
  #retry: NodeJS.Timeout | null = null;

  constructor(options: PoolOptions) {
    this.endpointId = options.endpointId;
    this.name = options.name;
    this.#options = options;
    options.budget.join(this);
  }

  get idleCount(): number {
    return this.#idle.length;
  }

  get isUnused(): boolean {
    return this.clients === 0 && this.#all.size === 0 && this.#waiting.size === 0 && this.#opening === 0;
  }

  get counts(): { readonly servers: number; readonly idle: number; readonly waiting: number } {
    return { servers: this.#all.size, idle: this.#idle.length, waiting: this.#waiting.size };
  }

  /** A server at once, or null: then `onServer` or `onNoServer` follows. */
  take(waiter: Waiter): ServerConnection | null {
    const server = this.#waiting.size === 0 ? this.#popIdle() : undefined;
    if (server !== undefined) {
      this.#hand(server, waiter);
      return server;
    }
    this.#waiting.add(waiter, Date.now());
    this.#watchPatience();
    this.#grow();
    return null;
  }

  /** One that has said that it stops, or has closed, is in the list until its socket is gone: nothing begins there. */
  #popIdle(): ServerConnection | undefined {
    for (;;) {
      const server = this.#idle.pop();
      if (server === undefined || !server.isRetired) return server;
      server.close();
    }
  }

  /** The waiter does not want one any more. */
  withdraw(waiter: Waiter): void {
    this.#waiting.remove(waiter);
  }

  /** Takes a free server back, for the next in the queue. */
  release(server: ServerConnection): void {
    server.leave();
    this.#offer(server);
  }

  giveUpIdle(): void {
    // The one at the bottom was idle longest.
    this.#idle.shift()?.close();
  }

  /** No connection of now is used for another transaction: their server is about to go. */
  retireAll(): void {
    for (const server of this.#idle.splice(0)) server.close();
    for (const server of this.#all) server.isRetired = true;
  }

  /** Closes what has been idle for long. */
  sweep(now: number): void {
    const { serverIdleMs } = this.#options.limits;
    const kept = this.#idle.filter((server) => now - server.idleSince < serverIdleMs);
    const old = this.#idle.filter((server) => now - server.idleSince >= serverIdleMs);
    this.#idle.splice(0, this.#idle.length, ...kept);
    for (const server of old) server.close();
  }

  close(): void {
    this.#abort.abort(new Error('the pool is closed'));
    if (this.#patience) clearTimeout(this.#patience);
    if (this.#retry) clearTimeout(this.#retry);
    for (const server of this.#all) server.close();
    this.#options.budget.leave(this);
  }

  get #max(): number {
    const { limit } = this.#options.budget;
    const { poolShare } = this.#options.limits;
    return Number.isFinite(limit) ? Math.max(1, Math.floor(limit * poolShare)) : unknownLimit;
  }

  #offer(server: ServerConnection): void {
    const { budget, limits } = this.#options;
    if (server.isClosing) return;
    const now = Date.now();
    const isOld = now - server.bornAt > limits.serverLifeMs;
    const isWanted = budget.isWanted(this, this.#all.size, this.#waiting.size > 0);
    if (server.isRetired || isOld || isWanted) return void server.close();
    const waiter = this.#waiting.shift();
    if (waiter === null) {
      server.idleSince = now;
      return void this.#idle.push(server);
    }
    this.#hand(server, waiter);
    waiter.onServer(server);
  }

  /** Makes the server what the user expects, in front of whatever it sends. */
  #hand(server: ServerConnection, waiter: Waiter): void {
    server.take(waiter);
    let sql = '';
    if (server.leftovers !== 'none' && server.lastUser !== waiter) {
      if (server.leftovers === 'more') {
        server.writeHidden('DISCARD ALL');
        server.statements.clear();
      } else sql = 'SET SESSION AUTHORIZATION DEFAULT;RESET ALL;';
      server.leftovers = 'none';
      server.values = server.loginValues;
    }
    sql += changeSql(server.values, waiter.values);
    if (sql !== '') server.writeHidden(sql);
  }

  #grow(): void {
    const { budget } = this.#options;
    // Who begins in a pool that has closed waits for the end of its own connection, which is near.
    if (this.#retry !== null || this.#abort.signal.aborted) return;
    for (;;) {
      const coming = this.#opening + this.#requested;
      const total = this.#all.size + coming;
      if (coming >= openingMax || coming >= this.#waiting.size || total >= this.#max) return;
      if (total >= eagerServers && this.#growLater()) return;
      this.#requested += 1;
      budget.request(() => {
        this.#requested -= 1;
        void this.#open();
      }, this);
    }
  }

  /** True when nobody has waited long enough; then it is looked at again. */
  #growLater(): boolean {
    const leftMs = (this.#waiting.firstSince ?? 0) + growAfterMs - Date.now();
    if (leftMs > 0) this.#retryAfter(leftMs);
    return leftMs > 0;
  }

  #retryAfter(ms: number): void {
    this.#retry ??= setTimeout(() => {
      this.#retry = null;
      this.#grow();
    }, ms);
  }

  /** Holds a place of the budget, and gives it back when the connection is gone or was never made. */
  async #open(): Promise<void> {
    const { budget, connect } = this.#options;
    const startedAt = Date.now();
    if (this.#waiting.size === 0 || this.#abort.signal.aborted) return budget.release(this);
    this.#opening += 1;
    try {
      const login = await connect(this.#abort.signal);
      const server = new ServerConnection(login, {
        table: this.statements,
        statementsMax: this.#options.limits.statementsPerServer,
        onGone: (gone) => this.#onGone(gone),
      });
      this.#opening -= 1;
      this.#all.add(server);
      this.#offer(server);
    } catch (thrown) {
      this.#opening -= 1;
      budget.release(this);
      this.#failed(thrown, startedAt);
    }
    this.#grow();
  }

  #failed(thrown: unknown, startedAt: number): void {
    const isFull = thrown instanceof ComputeRefusal && thrown.sqlState === tooManyState;
    this.#options.log[isFull ? 'debug' : 'info'](
      { endpointId: this.endpointId, reason: errorText(thrown) },
      'a pooled connection could not be opened',
    );
    // A backend whose client has gone may still be finishing; the queue's own patience bounds the wait.
    if (isFull) return void this.#retryAfter(fullRetryMs);
    // Those who came later get a try of their own.
    for (const waiter of this.#leaving(startedAt)) waiter.onNoServer(thrown);
  }

  /** Takes those out of the queue who came by then. */
  *#leaving(cameBy: number): Generator<Waiter> {
    for (let since = this.#waiting.firstSince; since !== null && since <= cameBy; since = this.#waiting.firstSince) {
      const waiter = this.#waiting.shift();
      if (waiter !== null) yield waiter;
    }
  }

  #onGone(server: ServerConnection): void {
    this.#all.delete(server);
    const at = this.#idle.indexOf(server);
    if (at !== -1) this.#idle.splice(at, 1);
    this.#options.budget.release(this);
    this.#grow();
  }

  /** One timer for the whole queue: who came first runs out of patience first. */
  #watchPatience(): void {
    if (this.#patience !== null) return;
    const since = this.#waiting.firstSince;
    if (since === null) return;
    const { queueMs } = this.#options.limits;
    this.#patience = setTimeout(
      () => {
        this.#patience = null;
        for (const waiter of this.#leaving(Date.now() - queueMs)) waiter.onNoServer(waitedTooLong(queueMs));
        this.#watchPatience();
      },
      Math.max(1, since + queueMs - Date.now()),
    );
  }
}

function waitedTooLong(queueMs: number): CatnapError {
  return new CatnapError(
    'too_many_connections',
    `query_wait_timeout: no server connection became free within ${queueMs / 1000} seconds`,
  );
}
