/**
 * One proxy's side of a budget that several proxies share; the scheme is described in `budget.ts`. It uses the permits
 * that the broker granted, keeps those that became free for the next connection, and returns them when a member of
 * the budget waits for one in another proxy.
 */
import { type BudgetMember, Budgets, type EndpointBudget, type PendingRequest, richestIn } from './budget.ts';
import {
  directMember,
  noShortage,
  type PermitAnswer,
  type PermitChannel,
  type PermitKind,
  type PermitRequest,
  type Shortage,
} from './messages.ts';

/** The budgets of one proxy among several. */
export function shareBudgets(permit: PermitKind, channel: PermitChannel): Budgets {
  const send = (request: PermitRequest) => channel.send(request);
  const budgets = new Budgets((endpointId) => new SharedBudget({ permit, endpointId, send }));
  channel.onAnswer((answer) => {
    if (answer.permit !== permit) return;
    const { endpointId } = answer;
    const budget = budgets.find(endpointId);
    if (budget instanceof SharedBudget) budget.receive(answer);
    else if (answer.answer === 'grant') {
      // The budget was swept after its last request was withdrawn.
      send({ request: 'return', permit, endpointId, member: answer.member, count: answer.count });
    }
  });
  return budgets;
}

/** What one member has in this proxy. */
interface Account {
  /** Permits that the broker granted, in use or not. */
  held: number;
  used: number;
  /** Idle connections that were asked to close, and will release their permits. */
  closing: number;
  readonly requests: Set<PendingRequest>;
}

interface SharedBudgetOptions {
  readonly permit: PermitKind;
  readonly endpointId: string;
  readonly send: (request: PermitRequest) => void;
}

class SharedBudget implements EndpointBudget {
  #limit = Number.POSITIVE_INFINITY;
  #shortage: Shortage = noShortage;
  readonly #options: SharedBudgetOptions;
  readonly #accounts = new Map<string, Account>();
  readonly #members = new Set<BudgetMember>();

  constructor(options: SharedBudgetOptions) {
    this.#options = options;
  }

  get limit(): number {
    return this.#limit;
  }

  get used(): number {
    let used = 0;
    for (const account of this.#accounts.values()) used += account.used;
    return used;
  }

  get isUnused(): boolean {
    const isEmpty = (account: Account) => account.held === 0 && account.requests.size === 0;
    return this.#members.size === 0 && [...this.#accounts.values()].every(isEmpty);
  }

  learnLimit(limit: number): void {
    if (limit === this.#limit) return;
    this.#limit = limit;
    this.#options.send({ request: 'limit', ...this.#subject, limit });
  }

  join(member: BudgetMember): void {
    this.#members.add(member);
  }

  leave(member: BudgetMember): void {
    this.#members.delete(member);
  }

  isWanted(member: BudgetMember, size: number, isBusy: boolean): boolean {
    const { endpoint, pools } = this.#shortage;
    const own = pools[member.name];
    const isWantedByOthers = endpoint.count > 0 && (!isBusy || size > endpoint.fairShare);
    return isWantedByOthers || (own !== undefined && own.count > 0 && (!isBusy || size > own.fairShare));
  }

  request(grant: () => void, member?: BudgetMember): () => void {
    const name = nameOf(member);
    const account = this.#account(name);
    if (account.held > account.used) {
      account.used += 1;
      grant();
      return () => {};
    }
    const request: PendingRequest = { grant };
    account.requests.add(request);
    this.#want(name, 1);
    return () => {
      if (account.requests.delete(request)) this.#want(name, -1);
    };
  }

  release(member?: BudgetMember): void {
    const name = nameOf(member);
    const account = this.#account(name);
    account.used -= 1;
    account.closing = Math.max(0, account.closing - 1);
    if (this.#isShort(name)) this.#giveBack(name, account, 1);
    else if (this.#grantPending(account)) this.#want(name, -1);
  }

  receive(answer: PermitAnswer): void {
    if (answer.answer === 'limit') this.#limit = answer.limit;
    else if (answer.answer === 'grant') this.#addGranted(answer.member, answer.count, answer.limit);
    else {
      this.#shortage = answer.shortage;
      this.#relieveShortage();
    }
  }

  /** Returns the permits that nobody here uses. */
  sweep(): void {
    for (const [name, account] of this.#accounts) {
      this.#giveBack(name, account, account.held - account.used);
      if (account.held === 0 && account.requests.size === 0) this.#accounts.delete(name);
    }
  }

  #addGranted(name: string, count: number, limit: number | null): void {
    if (limit !== null) this.#limit = limit;
    const account = this.#account(name);
    account.held += count;
    while (this.#grantPending(account));
    if (this.#isShort(name)) this.#giveBack(name, account, account.held - account.used);
  }

  /** False when nobody waits, or no permit is free. */
  #grantPending(account: Account): boolean {
    const [request] = account.requests;
    if (request === undefined || account.used >= account.held) return false;
    account.requests.delete(request);
    account.used += 1;
    request.grant();
    return true;
  }

  /** Returns free permits at once. The permits of idle connections follow when those are closed. */
  #relieveShortage(): void {
    for (const [name, account] of this.#accounts) {
      if (this.#isShort(name)) this.#giveBack(name, account, account.held - account.used);
    }
    const { endpoint, pools } = this.#shortage;
    for (const [name, { count }] of Object.entries(pools)) {
      const pool = [...this.#members].filter((member) => member.name === name);
      for (let n = this.#accounts.get(name)?.closing ?? 0; n < count && this.#closeIdle(pool); n++);
    }
    let closing = 0;
    for (const account of this.#accounts.values()) closing += account.closing;
    for (let n = closing; n < endpoint.count && this.#closeIdle(this.#members); n++);
  }

  /** False when no connection is idle. */
  #closeIdle(members: Iterable<BudgetMember>): boolean {
    const richest = richestIn(members);
    if (richest === null) return false;
    this.#account(richest.name).closing += 1;
    richest.giveUpIdle();
    return true;
  }

  #isShort(name: string): boolean {
    const { endpoint, pools } = this.#shortage;
    return endpoint.count > 0 || (pools[name]?.count ?? 0) > 0;
  }

  #giveBack(name: string, account: Account, count: number): void {
    if (count <= 0) return;
    account.held -= count;
    this.#options.send({ request: 'return', ...this.#subject, member: name, count });
  }

  #want(member: string, count: number): void {
    const limit = Number.isFinite(this.#limit) ? this.#limit : null;
    this.#options.send({ request: 'want', ...this.#subject, member, count, limit });
  }

  #account(name: string): Account {
    let account = this.#accounts.get(name);
    if (account === undefined) {
      account = { held: 0, used: 0, closing: 0, requests: new Set() };
      this.#accounts.set(name, account);
    }
    return account;
  }

  get #subject(): { readonly permit: PermitKind; readonly endpointId: string } {
    const { permit, endpointId } = this.#options;
    return { permit, endpointId };
  }
}

function nameOf(member: BudgetMember | undefined): string {
  return member?.name ?? directMember;
}
