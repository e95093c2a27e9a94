/**
 * How many server connections an endpoint may have, direct sessions and pools together: what its server takes, less
 * what stays reserved for Catnap. A pool that has connections to spare gives one up when somebody else needs it.
 */

/** Whoever may give an idle connection back. */
export interface BudgetMember {
  /** The same in every proxy, if there are several. */
  readonly name: string;
  readonly idleCount: number;
  /** Closes one idle connection; its place is free when it is gone. */
  giveUpIdle(): void;
}

export interface EndpointBudget {
  readonly used: number;
  readonly limit: number;
  readonly isUnused: boolean;
  join(member: BudgetMember): void;
  leave(member: BudgetMember): void;
  /** The server's size may have changed. */
  learnLimit(limit: number): void;
  /** Whether a member with so many connections should let one go, since somebody waits for a place. */
  isWanted(member: BudgetMember, size: number, isBusy: boolean): boolean;
  /**
   * Calls back when a place is taken, perhaps at once. The function withdraws the request. A direct session has no
   * member.
   */
  request(grant: () => void, member?: BudgetMember): () => void;
  /** Gives a place back, once. */
  release(member?: BudgetMember): void;
  /** Called now and then. */
  sweep(): void;
}

interface Request {
  grant(): void;
}

/** Of the only proxy. */
class OwnBudget implements EndpointBudget {
  /** Unknown, and so without bound, until the endpoint has been reached once. */
  #limit = Number.POSITIVE_INFINITY;
  #used = 0;
  readonly #requests = new Set<Request>();
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
    this.#grantMore();
  }

  request(grant: () => void): () => void {
    const request: Request = { grant };
    this.#requests.add(request);
    this.#grantMore();
    if (this.#requests.has(request)) this.#askToGiveUp();
    return () => this.#requests.delete(request);
  }

  release(): void {
    this.#used -= 1;
    this.#grantMore();
  }

  sweep(): void {}

  /** What one of the pools may keep while others wait. */
  get #fairShare(): number {
    return Math.max(1, Math.floor(this.#limit / Math.max(1, this.#members.size)));
  }

  #grantMore(): void {
    for (const request of this.#requests) {
      if (this.#used >= this.#limit) return;
      this.#requests.delete(request);
      this.#used += 1;
      request.grant();
    }
  }

  #askToGiveUp(): void {
    let richest: BudgetMember | null = null;
    for (const member of this.#members) if (member.idleCount > (richest?.idleCount ?? 0)) richest = member;
    richest?.giveUpIdle();
  }
}

export class Budgets {
  readonly #byEndpoint = new Map<string, EndpointBudget>();
  readonly #make: (endpointId: string) => EndpointBudget;

  constructor(make: (endpointId: string) => EndpointBudget = () => new OwnBudget()) {
    this.#make = make;
  }

  of(endpointId: string): EndpointBudget {
    let budget = this.#byEndpoint.get(endpointId);
    if (budget === undefined) {
      budget = this.#make(endpointId);
      this.#byEndpoint.set(endpointId, budget);
    }
    return budget;
  }

  find(endpointId: string): EndpointBudget | undefined {
    return this.#byEndpoint.get(endpointId);
  }

  /** Drops what nobody uses. */
  sweep(): void {
    for (const [endpointId, budget] of this.#byEndpoint) {
      budget.sweep();
      if (budget.isUnused) this.#byEndpoint.delete(endpointId);
    }
  }
}
