/**
 * How many server connections an endpoint may have, direct sessions and pools together: what its server takes, less
 * what stays reserved for Catnap. A pool that has connections to spare gives one up when somebody else needs it.
 */

/** Whoever may give an idle connection back. */
export interface BudgetMember {
  readonly idleCount: number;
  /** Closes one idle connection; its place is free when it is gone. */
  giveUpIdle(): void;
}

interface Request {
  grant(): void;
}

export class EndpointBudget {
  /** Unknown, and so without bound, until the endpoint has been reached once. */
  #limit = Number.POSITIVE_INFINITY;
  #used = 0;
  readonly #requests = new Set<Request>();
  readonly members = new Set<BudgetMember>();

  get used(): number {
    return this.#used;
  }

  get limit(): number {
    return this.#limit;
  }

  get isUnused(): boolean {
    return this.#used === 0 && this.members.size === 0 && this.#requests.size === 0;
  }

  /** Somebody waits for a place. */
  get isShort(): boolean {
    return this.#requests.size > 0;
  }

  /** What one of the pools may keep while others wait. */
  get fairShare(): number {
    return Math.max(1, Math.floor(this.#limit / Math.max(1, this.members.size)));
  }

  /** The server's size may have changed. */
  learnLimit(limit: number): void {
    this.#limit = limit;
    this.#grantMore();
  }

  /** Calls back when a place is taken, perhaps at once. The function withdraws the request. */
  request(grant: () => void): () => void {
    const request: Request = { grant };
    this.#requests.add(request);
    this.#grantMore();
    if (this.#requests.has(request)) this.#askToGiveUp();
    return () => this.#requests.delete(request);
  }

  /** Gives a place back, once. */
  release(): void {
    this.#used -= 1;
    this.#grantMore();
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
    for (const member of this.members) if (member.idleCount > (richest?.idleCount ?? 0)) richest = member;
    richest?.giveUpIdle();
  }
}

export class Budgets {
  readonly #byEndpoint = new Map<string, EndpointBudget>();

  of(endpointId: string): EndpointBudget {
    let budget = this.#byEndpoint.get(endpointId);
    if (budget === undefined) {
      budget = new EndpointBudget();
      this.#byEndpoint.set(endpointId, budget);
    }
    return budget;
  }

  /** Drops what nobody uses. */
  sweep(): void {
    for (const [endpointId, budget] of this.#byEndpoint) if (budget.isUnused) this.#byEndpoint.delete(endpointId);
  }
}
