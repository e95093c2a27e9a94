/**
 * The budget of an endpoint: how many server connections its clients may have, direct sessions and pools together.
 *
 * A permit is the right to have one connection. An endpoint has one for each connection that its server takes, less
 * those reserved for Catnap. A permit belongs to a member of the budget, that is, to one pool or to all direct sessions
 * together, and is released when its connection is closed. A pool closes an idle connection when another member waits.
 *
 * A single proxy counts for itself (`LocalBudget`). Several share each budget (`SharedBudget`): a broker in the parent
 * process (`broker.ts`) grants permits to one member in one proxy, so that all proxies together never have more
 * connections than the server takes, nor one pool more than its part of them. To save messages, a proxy keeps a permit
 * that became free for its next connection, and direct sessions are granted a few ahead while there are plenty. When
 * none is left, the broker reports the shortage to every proxy: they return free permits and close idle connections.
 * When a proxy dies, the parent process notices, and the broker takes its permits back at once.
 *
 * The connections of pooled clients are counted over all proxies in the same way (`client-permits.ts`).
 */
import { CatnapError } from '../../lib/errors.ts';

/** A pool, as the budget sees it. */
export interface BudgetMember {
  /** The same in every proxy. */
  readonly name: string;
  readonly idleCount: number;
  /** Closes one idle connection; its permit is released when the connection is gone. */
  giveUpIdle(): void;
}

export interface EndpointBudget {
  /** Permits in use in this proxy. */
  readonly used: number;
  /** Permits of the endpoint in all. Infinite until the endpoint has been reached once. */
  readonly limit: number;
  readonly isUnused: boolean;
  join(member: BudgetMember): void;
  leave(member: BudgetMember): void;
  /** Called after each wake: the size of the server may have changed. */
  learnLimit(limit: number): void;
  /** Whether a member with that many connections should close one, because somebody else waits for a permit. */
  isWanted(member: BudgetMember, size: number, isBusy: boolean): boolean;
  /**
   * Calls `grant` when there is a permit, perhaps before it returns. The function that is returned withdraws the
   * request. Without a member the permit is for a direct session.
   */
  request(grant: () => void, member?: BudgetMember): () => void;
  /** Must be called once for each granted permit. */
  release(member?: BudgetMember): void;
  /** Called every few seconds. */
  sweep(): void;
}

/** A permit that is waited for. */
export interface PendingRequest {
  grant(): void;
}

/** The budget of an endpoint that has a single proxy in front of it. */
class LocalBudget implements EndpointBudget {
  #limit = Number.POSITIVE_INFINITY;
  #used = 0;
  readonly #requests = new Set<PendingRequest>();
  readonly #members = new Set<BudgetMember>();

  get used(): number {
    return this.#used;
  }

  get limit(): number {
    return this.#limit;
  }

  get isUnused(): boolean {
    return this.#used === 0 && this.#members.size === 0 && this.#requests.size === 0;
  }

  join(member: BudgetMember): void {
    this.#members.add(member);
  }

  leave(member: BudgetMember): void {
    this.#members.delete(member);
  }

  isWanted(_member: BudgetMember, size: number, isBusy: boolean): boolean {
    return this.#requests.size > 0 && (!isBusy || size > this.#fairShare);
  }

  learnLimit(limit: number): void {
    this.#limit = limit;
    this.#grantPending();
  }

  request(grant: () => void): () => void {
    const request: PendingRequest = { grant };
    this.#requests.add(request);
    this.#grantPending();
    if (this.#requests.has(request)) richestIn(this.#members)?.giveUpIdle();
    return () => this.#requests.delete(request);
  }

  release(): void {
    this.#used -= 1;
    this.#grantPending();
  }

  sweep(): void {}

  /** How many connections each pool may keep while others wait. */
  get #fairShare(): number {
    return Math.max(1, Math.floor(this.#limit / Math.max(1, this.#members.size)));
  }

  #grantPending(): void {
    for (const request of this.#requests) {
      if (this.#used >= this.#limit) return;
      this.#requests.delete(request);
      this.#used += 1;
      request.grant();
    }
  }
}

/** The message of Postgres. */
export const serverIsFull = 'sorry, too many clients already';

/**
 * Waits for the permit of a connection that belongs to no pool. Resolves with the function that releases the permit;
 * rejects with `refusal` when there is none within `ms`.
 */
export function takePermit(
  budget: EndpointBudget,
  ms: number,
  signal: AbortSignal,
  refusal = serverIsFull,
): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const stopWaiting = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
    };
    const giveUp = (reason: unknown) => {
      stopWaiting();
      withdraw();
      reject(reason);
    };
    const onAbort = () => giveUp(signal.reason);
    const timer = setTimeout(() => giveUp(new CatnapError('too_many_connections', refusal)), ms);
    signal.addEventListener('abort', onAbort, { once: true });
    const withdraw = budget.request(() => {
      stopWaiting();
      resolve(() => budget.release());
    });
  });
}

/** The member with the most idle connections; null when none has any. */
export function richestIn(members: Iterable<BudgetMember>): BudgetMember | null {
  let richest: BudgetMember | null = null;
  for (const member of members) if (member.idleCount > (richest?.idleCount ?? 0)) richest = member;
  return richest;
}

/** The budgets of one proxy, by endpoint. */
export class Budgets {
  readonly #byEndpoint = new Map<string, EndpointBudget>();
  readonly #create: (endpointId: string) => EndpointBudget;

  constructor(create: (endpointId: string) => EndpointBudget = () => new LocalBudget()) {
    this.#create = create;
  }

  of(endpointId: string): EndpointBudget {
    let budget = this.#byEndpoint.get(endpointId);
    if (budget === undefined) {
      budget = this.#create(endpointId);
      this.#byEndpoint.set(endpointId, budget);
    }
    return budget;
  }

  find(endpointId: string): EndpointBudget | undefined {
    return this.#byEndpoint.get(endpointId);
  }

  /** Drops budgets that nobody uses. */
  sweep(): void {
    for (const [endpointId, budget] of this.#byEndpoint) {
      budget.sweep();
      if (budget.isUnused) this.#byEndpoint.delete(endpointId);
    }
  }
}
