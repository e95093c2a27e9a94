/**
 * The server connections of one endpoint, role and database (and password, and startup parameters), and the line of
 * waiters that want one. A connection is opened when a waiter needs it and the endpoint's budget grants a permit; it
 * comes back after each transaction.
 */
import { CatnapError, errorText } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { ComputeLogin } from '../compute/login.ts';
import { ComputeRefusal } from '../compute/session.ts';
import type { ProxyLimits } from '../kit/limits.ts';
import type { BudgetMember, EndpointBudget } from '../permits/budget.ts';
import { ServerConnection, type ServerUser } from './server-connection.ts';
import { StatementTable } from './statements.ts';
import type { TrackedValues } from './tracked-settings.ts';
import { WaitingLine } from './waiting-line.ts';

/** Wants a server connection, and becomes its user. */
export interface Waiter extends ServerUser {
  /** The settings that the server must have. */
  readonly values: TrackedValues;
  onServer(server: ServerConnection): void;
  /** The wait is over without a server; `error` is for the client. */
  onNoServer(error: unknown): void;
}

/** What a client is greeted with. */
export interface Greeting {
  readonly values: TrackedValues;
  /** ParameterStatus messages; in the memory of the pool without that of the application name. */
  readonly bytes: Buffer;
}

export interface PoolOptions {
  readonly endpointId: string;
  /** What the budget calls this pool. */
  readonly name: string;
  readonly budget: EndpointBudget;
  /** Logs in to the endpoint's server, and wakes it first if necessary. */
  readonly connect: (signal: AbortSignal) => Promise<ComputeLogin>;
  readonly limits: ProxyLimits;
  readonly log: Logger;
}

/** Logins at the same time: a burst of clients is served sooner by a few connections than by one for each client. */
const openingMax = 4;
/** Connections of one pool while the endpoint's limit is not known. */
const unknownLimit = 20;
/** This many connections are opened without delay. More of them only help when transactions wait for something. */
const eagerServers = 16;
/** Beyond that, a waiter must have waited this long: a short transaction ends sooner than a login takes. */
const growAfterMs = 100;
/** Between two logins at a server that is full. */
const fullRetryMs = 100;
const tooManyConnections = '53300';

export class Pool implements BudgetMember {
  readonly statements = new StatementTable();
  readonly greetings = new Map<string, Greeting>();
  readonly endpointId: string;
  readonly name: string;
  /** How many clients may come back for a server. */
  clients = 0;
  readonly #options: PoolOptions;
  /** Free connections; the one at the end was used last. */
  readonly #idle: ServerConnection[] = [];
  readonly #servers = new Set<ServerConnection>();
  readonly #waiting = new WaitingLine<Waiter>();
  readonly #abort = new AbortController();
  /** Permits that the budget has not granted yet. */
  #requested = 0;
  /** Logins under way. */
  #opening = 0;
  #waitTimer: NodeJS.Timeout | null = null;
  #growTimer: NodeJS.Timeout | null = null;

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
    return this.clients === 0 && this.#servers.size === 0 && this.#waiting.size === 0 && this.#opening === 0;
  }

  /** Returns a server at once, or null: then `onServer` or `onNoServer` follows. */
  take(waiter: Waiter): ServerConnection | null {
    const server = this.#waiting.size === 0 ? this.#popIdle() : undefined;
    if (server !== undefined) {
      server.assign(waiter, waiter.values);
      return server;
    }
    this.#waiting.add(waiter, Date.now());
    this.#startWaitTimer();
    this.#grow();
    return null;
  }

  /** A retired connection stays in the list until its socket is closed, but no transaction starts on it. */
  #popIdle(): ServerConnection | undefined {
    for (;;) {
      const server = this.#idle.pop();
      if (server === undefined || !server.isRetired) return server;
      server.close();
    }
  }

  /** The waiter does not want a server any more. */
  withdraw(waiter: Waiter): void {
    this.#waiting.remove(waiter);
  }

  /** Takes back a free server, for the next waiter. */
  release(server: ServerConnection): void {
    server.unassign();
    this.#offer(server);
  }

  giveUpIdle(): void {
    // The first one has been idle longest.
    this.#idle.shift()?.close();
  }

  /**
   * The endpoint's server is about to stop, or runs at another address: no connection to any other is used for another
   * transaction. Null for no address at all.
   */
  retireOutside(socketName: string | null): void {
    const stale = this.#idle.filter((server) => server.socketName !== socketName);
    this.#idle.splice(0, this.#idle.length, ...this.#idle.filter((server) => server.socketName === socketName));
    for (const server of stale) server.close();
    for (const server of this.#servers) if (server.socketName !== socketName) server.isRetired = true;
  }

  /** Closes connections that have been idle for too long. */
  sweep(now: number): void {
    const { serverIdleMs } = this.#options.limits;
    const kept = this.#idle.filter((server) => now - server.idleSince < serverIdleMs);
    const expired = this.#idle.filter((server) => now - server.idleSince >= serverIdleMs);
    this.#idle.splice(0, this.#idle.length, ...kept);
    for (const server of expired) server.close();
  }

  close(): void {
    this.#abort.abort(new Error('the pool is closed'));
    if (this.#waitTimer) clearTimeout(this.#waitTimer);
    if (this.#growTimer) clearTimeout(this.#growTimer);
    for (const server of this.#servers) server.close();
    this.#options.budget.leave(this);
  }

  get #max(): number {
    const { limit } = this.#options.budget;
    const { poolShare } = this.#options.limits;
    return Number.isFinite(limit) ? Math.max(1, Math.floor(limit * poolShare)) : unknownLimit;
  }

  /** Gives a free server to the first waiter, or keeps it, or closes it when it is old or its permit is needed. */
  #offer(server: ServerConnection): void {
    const { budget, limits } = this.#options;
    if (server.isClosing) return;
    const now = Date.now();
    const isOld = now - server.openedAt > limits.serverLifeMs;
    const isWanted = budget.isWanted(this, this.#servers.size, this.#waiting.size > 0);
    if (server.isRetired || isOld || isWanted) return void server.close();
    const waiter = this.#waiting.shift();
    if (waiter === null) {
      server.idleSince = now;
      return void this.#idle.push(server);
    }
    server.assign(waiter, waiter.values);
    waiter.onServer(server);
  }

  /** Requests permits for as many connections as there are waiters, within the limits. */
  #grow(): void {
    const { budget } = this.#options;
    // A client that starts in a closed pool waits for its own connection to close, which takes milliseconds.
    if (this.#growTimer !== null || this.#abort.signal.aborted) return;
    for (;;) {
      const coming = this.#opening + this.#requested;
      const total = this.#servers.size + coming;
      if (coming >= openingMax || coming >= this.#waiting.size || total >= this.#max) return;
      if (total >= eagerServers && this.#mustWaitToGrow()) return;
      this.#requested += 1;
      budget.request(() => {
        this.#requested -= 1;
        void this.#open();
      }, this);
    }
  }

  /** Whether no waiter has waited long enough; then `grow` runs again at the right time. */
  #mustWaitToGrow(): boolean {
    const leftMs = (this.#waiting.firstSince ?? 0) + growAfterMs - Date.now();
    if (leftMs > 0) this.#growAfter(leftMs);
    return leftMs > 0;
  }

  #growAfter(ms: number): void {
    this.#growTimer ??= setTimeout(() => {
      this.#growTimer = null;
      this.#grow();
    }, ms);
  }

  /** Opens a connection with a granted permit. The permit goes back when the connection is closed or was never open. */
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
        onClosed: (closed) => this.#onServerClosed(closed),
      });
      this.#opening -= 1;
      this.#servers.add(server);
      this.#offer(server);
    } catch (thrown) {
      this.#opening -= 1;
      budget.release(this);
      this.#onOpenFailed(thrown, startedAt);
    }
    this.#grow();
  }

  #onOpenFailed(thrown: unknown, startedAt: number): void {
    const isFull = thrown instanceof ComputeRefusal && thrown.sqlState === tooManyConnections;
    this.#options.log[isFull ? 'debug' : 'info'](
      { endpointId: this.endpointId, reason: errorText(thrown) },
      'a pooled connection could not be opened',
    );
    // A backend whose client has left may still be finishing. How long waiters wait is limited by `queueMs` anyway.
    if (isFull) return void this.#growAfter(fullRetryMs);
    // Waiters that came after this attempt had started get an attempt of their own.
    for (const waiter of this.#waiting.shiftSince(startedAt)) waiter.onNoServer(thrown);
  }

  #onServerClosed(server: ServerConnection): void {
    this.#servers.delete(server);
    const index = this.#idle.indexOf(server);
    if (index !== -1) this.#idle.splice(index, 1);
    this.#options.budget.release(this);
    this.#grow();
  }

  /** One timer for the whole line: the first waiter is the first to have waited too long. */
  #startWaitTimer(): void {
    if (this.#waitTimer !== null) return;
    const since = this.#waiting.firstSince;
    if (since === null) return;
    const { queueMs } = this.#options.limits;
    this.#waitTimer = setTimeout(
      () => {
        this.#waitTimer = null;
        for (const waiter of this.#waiting.shiftSince(Date.now() - queueMs)) waiter.onNoServer(waitedTooLong(queueMs));
        this.#startWaitTimer();
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
