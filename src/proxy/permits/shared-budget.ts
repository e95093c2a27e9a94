/**
 * One proxy's side of an endpoint's budget that it shares with others. It uses the places that it was granted, keeps
 * those that became free for the next who wants one, and gives them back when somebody elsewhere waits.
 */
import { type BudgetMember, Budgets, type EndpointBudget } from './budget.ts';
import {
  directMember,
  noShortage,
  type PlaceAsk,
  type PlaceChannel,
  type PlaceTell,
  type Shortage,
  type Space,
} from './messages.ts';

/** The budgets of one proxy among several. */
export function shareBudgets(space: Space, channel: PlaceChannel): Budgets {
  const send = (ask: PlaceAsk) => channel.send(ask);
  const budgets = new Budgets((endpointId) => new SharedBudget({ space, endpointId, send }));
  channel.onTell((message) => {
    if (message.space !== space) return;
    const { endpointId } = message;
    const budget = budgets.find(endpointId);
    if (budget instanceof SharedBudget) budget.hear(message);
    // Nobody here wants it any more.
    else if (message.tell === 'grant')
      send({ ask: 'return', space, endpointId, member: message.member, count: message.count });
  });
  return budgets;
}

interface Account {
  /** Granted by the broker. */
  held: number;
  used: number;
  /** Idle connections that were asked to go, and whose places will come back. */
  leaving: number;
  readonly requests: Set<Request>;
}

interface Request {
  grant(): void;
}

interface SharedBudgetOptions {
  readonly space: Space;
  readonly endpointId: string;
  readonly send: (ask: PlaceAsk) => void;
}

class SharedBudget implements EndpointBudget {
  /** Unknown, and so without bound, until the endpoint has been reached once. */
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
    const isIdle = (account: Account) => account.held === 0 && account.requests.size === 0;
    return this.#members.size === 0 && [...this.#accounts.values()].every(isIdle);
  }

  learnLimit(limit: number): void {
    if (limit === this.#limit) return;
    this.#limit = limit;
    this.#options.send({ ask: 'limit', ...this.#place, limit });
  }

  join(member: BudgetMember): void {
    this.#members.add(member);
  }

  leave(member: BudgetMember): void {
    this.#members.delete(member);
  }

  isWanted(member: BudgetMember, size: number, isBusy: boolean): boolean {
    const { any, members } = this.#shortage;
    const own = members[member.name];
    const isLacking = any.count > 0 && (!isBusy || size > any.share);
    return isLacking || (own !== undefined && own.count > 0 && (!isBusy || size > own.share));
  }

  request(grant: () => void, member?: BudgetMember): () => void {
    const name = nameOf(member);
    const account = this.#account(name);
    if (account.held > account.used) {
      account.used += 1;
      grant();
      return () => {};
    }
    const request: Request = { grant };
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
    account.leaving = Math.max(0, account.leaving - 1);
    if (this.#isLacking(name)) this.#giveBack(name, account, 1);
    else if (this.#grant(account)) this.#want(name, -1);
  }

  hear(message: PlaceTell): void {
    if (message.tell === 'limit') this.#limit = message.limit;
    else if (message.tell === 'grant') this.#receive(message.member, message.count, message.limit);
    else {
      this.#shortage = message.shortage;
      this.#makeRoom();
    }
  }

  /** Gives back what nobody here uses. */
  sweep(): void {
    for (const [name, account] of this.#accounts) {
      this.#giveBack(name, account, account.held - account.used);
      if (account.held === 0 && account.requests.size === 0) this.#accounts.delete(name);
    }
  }

  #receive(name: string, count: number, limit: number | null): void {
    if (limit !== null) this.#limit = limit;
    const account = this.#account(name);
    account.held += count;
    while (this.#grant(account));
    if (this.#isLacking(name)) this.#giveBack(name, account, account.held - account.used);
  }

  #grant(account: Account): boolean {
    const [request] = account.requests;
    if (request === undefined || account.used >= account.held) return false;
    account.requests.delete(request);
    account.used += 1;
    request.grant();
    return true;
  }

  /** Somebody waits: free places go at once, those of idle connections when these are gone. */
  #makeRoom(): void {
    for (const [name, account] of this.#accounts) {
      if (this.#isLacking(name)) this.#giveBack(name, account, account.held - account.used);
    }
    const { any, members } = this.#shortage;
    for (const [name, { count }] of Object.entries(members)) {
      const pool = [...this.#members].filter((member) => member.name === name);
      for (let n = this.#accounts.get(name)?.leaving ?? 0; n < count && this.#giveUpIdle(pool); n++);
    }
    let leaving = 0;
    for (const account of this.#accounts.values()) leaving += account.leaving;
    for (let n = leaving; n < any.count && this.#giveUpIdle(this.#members); n++);
  }

  /** False when there is none. */
  #giveUpIdle(members: Iterable<BudgetMember>): boolean {
    let richest: BudgetMember | null = null;
    for (const member of members) if (member.idleCount > (richest?.idleCount ?? 0)) richest = member;
    if (richest === null) return false;
    this.#account(richest.name).leaving += 1;
    richest.giveUpIdle();
    return true;
  }

  #isLacking(name: string): boolean {
    const { any, members } = this.#shortage;
    return any.count > 0 || (members[name]?.count ?? 0) > 0;
  }

  #giveBack(name: string, account: Account, count: number): void {
    if (count <= 0) return;
    account.held -= count;
    this.#options.send({ ask: 'return', ...this.#place, member: name, count });
  }

  #want(member: string, count: number): void {
    const limit = Number.isFinite(this.#limit) ? this.#limit : null;
    this.#options.send({ ask: 'want', ...this.#place, member, count, limit });
  }

  #account(name: string): Account {
    let account = this.#accounts.get(name);
    if (account === undefined) {
      account = { held: 0, used: 0, leaving: 0, requests: new Set() };
      this.#accounts.set(name, account);
    }
    return account;
  }

  get #place(): { readonly space: Space; readonly endpointId: string } {
    const { space, endpointId } = this.#options;
    return { space, endpointId };
  }
}

function nameOf(member: BudgetMember | undefined): string {
  return member?.name ?? directMember;
}
