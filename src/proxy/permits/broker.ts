/**
 * The broker of permits in the parent process; the scheme is described in `budget.ts`. It keeps a ledger for each
 * endpoint: how many permits each proxy holds and wants, for each of its members. As long as there are permits it
 * grants what is wanted, to the account that holds the fewest first; when there are none, it reports the shortage to
 * every proxy of the endpoint.
 */
import {
  directMember,
  noShortage,
  type PermitAnswer,
  type PermitKind,
  type PermitRequest,
  type Shortage,
  type UnmetDemand,
} from './messages.ts';

export interface BrokerOptions {
  readonly permit: PermitKind;
  /** Part of the permits that one pool may have, in all proxies together. */
  readonly poolShare: number;
  /** Granted to direct sessions beyond what was wanted, while there are plenty, so that not every session asks. */
  readonly ahead: number;
}

/** A proxy, as the broker sees it. */
export interface PermitHolder {
  send(answer: PermitAnswer): void;
}

/** What one member of the budget has in one proxy. */
interface Account {
  readonly holder: PermitHolder;
  readonly member: string;
  held: number;
  wanted: number;
}

/** The permits of one endpoint. */
interface Ledger {
  limit: number;
  held: number;
  readonly accounts: Map<PermitHolder, Map<string, Account>>;
  /** What each pool holds in all proxies. Kept, because a tenant may have many pools and the parent little time. */
  readonly heldByPool: Map<string, number>;
  /** Accounts that want permits. One that was granted a permit and wants more moves to the end. */
  readonly wanting: Set<Account>;
  /** The last report of a shortage, as JSON, and the proxies that it was sent to. */
  reported: string;
  readonly reportedTo: Set<PermitHolder>;
}

const noShortageText = JSON.stringify(noShortage);
/** More than any server takes. */
const unbounded = 1_000_000;
/** At most one in so many free permits is granted ahead. */
const freeForOneAhead = 8;

export class PermitBroker {
  readonly #options: BrokerOptions;
  readonly #ledgers = new Map<string, Ledger>();

  constructor(options: BrokerOptions) {
    this.#options = options;
  }

  /** Number of endpoints for which a proxy holds or wants permits. */
  get size(): number {
    return this.#ledgers.size;
  }

  /** Permits that are granted now. */
  held(endpointId: string): number {
    return this.#ledgers.get(endpointId)?.held ?? 0;
  }

  handle(holder: PermitHolder, request: PermitRequest): void {
    const { endpointId } = request;
    const ledger = this.#ledgers.get(endpointId) ?? createLedger();
    this.#ledgers.set(endpointId, ledger);
    if (request.request === 'limit') this.#changeLimit(endpointId, ledger, request.limit);
    else {
      const account = accountOf(ledger, holder, request.member);
      if (request.request === 'want') {
        if (request.limit !== null && ledger.limit === Number.POSITIVE_INFINITY) ledger.limit = request.limit;
        account.wanted = Math.max(0, account.wanted + request.count);
        if (account.wanted > 0) ledger.wanting.add(account);
        else ledger.wanting.delete(account);
      } else addHeld(ledger, account, -Math.min(account.held, request.count));
      if (account.held === 0 && account.wanted === 0) this.#closeAccount(endpointId, ledger, account);
    }
    this.#grantWanted(endpointId, ledger);
  }

  /** The proxy has ended, and its connections with it. */
  remove(holder: PermitHolder): void {
    for (const [endpointId, ledger] of this.#ledgers) {
      for (const account of ledger.accounts.get(holder)?.values() ?? []) {
        addHeld(ledger, account, -account.held);
        ledger.wanting.delete(account);
      }
      ledger.accounts.delete(holder);
      ledger.reportedTo.delete(holder);
      this.#grantWanted(endpointId, ledger);
    }
  }

  /** A proxy without accounts gets no more reports about the endpoint, so the last one must not say "shortage". */
  #closeAccount(endpointId: string, ledger: Ledger, { holder, member }: Account): void {
    const accounts = ledger.accounts.get(holder);
    accounts?.delete(member);
    if (accounts?.size !== 0) return;
    ledger.accounts.delete(holder);
    if (!ledger.reportedTo.delete(holder) || ledger.reported === noShortageText) return;
    holder.send({ answer: 'shortage', ...this.#subject(endpointId), shortage: noShortage });
  }

  #changeLimit(endpointId: string, ledger: Ledger, limit: number): void {
    if (ledger.limit === limit) return;
    ledger.limit = limit;
    for (const holder of ledger.accounts.keys()) holder.send({ answer: 'limit', ...this.#subject(endpointId), limit });
  }

  #grantWanted(endpointId: string, ledger: Ledger): void {
    const granted = new Map<Account, number>();
    for (let account = this.#next(ledger); account !== undefined; account = this.#next(ledger)) {
      account.wanted -= 1;
      ledger.wanting.delete(account);
      if (account.wanted > 0) ledger.wanting.add(account);
      const count = 1 + (ledger.wanting.size === 0 ? this.#ahead(ledger, account) : 0);
      addHeld(ledger, account, count);
      granted.set(account, (granted.get(account) ?? 0) + count);
    }
    const limit = Number.isFinite(ledger.limit) ? ledger.limit : null;
    for (const [{ holder, member }, count] of granted) {
      holder.send({ answer: 'grant', ...this.#subject(endpointId), member, count, limit });
    }
    this.#reportShortage(endpointId, ledger);
    if (ledger.accounts.size === 0) this.#ledgers.delete(endpointId);
  }

  /** The account that holds the fewest; among equals, the one that has waited longest. */
  #next(ledger: Ledger): Account | undefined {
    if (ledger.held >= ledger.limit) return undefined;
    let poorest: Account | undefined;
    for (const account of ledger.wanting) {
      if (this.#isAtPoolMax(ledger, account.member)) continue;
      if (poorest === undefined || rank(account) < rank(poorest)) poorest = account;
    }
    return poorest;
  }

  #ahead(ledger: Ledger, account: Account): number {
    if (account.member !== directMember || !Number.isFinite(ledger.limit)) return 0;
    return Math.min(this.#options.ahead, Math.floor((ledger.limit - ledger.held - 1) / freeForOneAhead));
  }

  #isAtPoolMax(ledger: Ledger, member: string): boolean {
    if (member === directMember) return false;
    const poolMax = Math.max(1, Math.floor(ledger.limit * this.#options.poolShare));
    return (ledger.heldByPool.get(member) ?? 0) >= poolMax;
  }

  #reportShortage(endpointId: string, ledger: Ledger): void {
    const shortage = this.#shortage(ledger);
    const text = JSON.stringify(shortage);
    for (const holder of ledger.accounts.keys()) {
      if (text === (ledger.reportedTo.has(holder) ? ledger.reported : noShortageText)) continue;
      holder.send({ answer: 'shortage', ...this.#subject(endpointId), shortage });
    }
    ledger.reported = text;
    for (const holder of ledger.accounts.keys()) ledger.reportedTo.add(holder);
  }

  #shortage(ledger: Ledger): Shortage {
    let endpoint: UnmetDemand = noShortage.endpoint;
    const pools: Record<string, UnmetDemand> = {};
    for (const account of ledger.wanting) {
      const { member } = account;
      const fairShare = fairShareBeside(account, ledger);
      if (this.#isAtPoolMax(ledger, member)) pools[member] = addDemand(pools[member], account, fairShare);
      else endpoint = addDemand(endpoint, account, fairShare);
    }
    return { endpoint, pools };
  }

  #subject(endpointId: string): { permit: PermitKind; endpointId: string } {
    return { permit: this.#options.permit, endpointId };
  }
}

/** Direct sessions come first: each of them wants a single permit, however many the account holds. */
function rank({ member, held }: Account): number {
  return member === directMember ? 0 : held;
}

/**
 * How many connections a busy pool may keep while the account waits: one more than the account has. If a permit moved
 * for less, the pool would want it back, and connections would be closed and opened for ever. While a direct session
 * waits, a pool may keep an even share of the endpoint.
 */
function fairShareBeside(account: Account, ledger: Ledger): number {
  if (account.member !== directMember) return account.held + 1;
  let pools = 0;
  for (const accounts of ledger.accounts.values()) pools += accounts.size - (accounts.has(directMember) ? 1 : 0);
  return Math.max(1, Math.floor(Math.min(ledger.limit, unbounded) / Math.max(1, pools)));
}

function addDemand(demand: UnmetDemand | undefined, { wanted }: Account, fairShare: number): UnmetDemand {
  if (demand === undefined || demand.count === 0) return { count: wanted, fairShare };
  return { count: demand.count + wanted, fairShare: Math.min(demand.fairShare, fairShare) };
}

function addHeld(ledger: Ledger, account: Account, count: number): void {
  account.held += count;
  ledger.held += count;
  if (account.member === directMember || count === 0) return;
  const held = (ledger.heldByPool.get(account.member) ?? 0) + count;
  if (held > 0) ledger.heldByPool.set(account.member, held);
  else ledger.heldByPool.delete(account.member);
}

function accountOf(ledger: Ledger, holder: PermitHolder, member: string): Account {
  const accounts = ledger.accounts.get(holder) ?? new Map<string, Account>();
  ledger.accounts.set(holder, accounts);
  const account = accounts.get(member) ?? { holder, member, held: 0, wanted: 0 };
  accounts.set(member, account);
  return account;
}

function createLedger(): Ledger {
  return {
    limit: Number.POSITIVE_INFINITY,
    held: 0,
    accounts: new Map(),
    heldByPool: new Map(),
    wanting: new Set(),
    reported: noShortageText,
    reportedTo: new Set(),
  };
}
