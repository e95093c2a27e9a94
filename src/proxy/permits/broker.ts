/**
 * Shares the places of each endpoint among proxies, so that together they never have more than there are. It grants
 * what is wanted as long as there is some; when there is not, it lets everybody know, and who has idle ones gives them
 * back. Who has least comes first. The places of a proxy that is gone are free at once.
 */
import {
  directMember,
  type Lack,
  noShortage,
  type PlaceAsk,
  type PlaceTell,
  type Shortage,
  type Space,
} from './messages.ts';

export interface BrokerOptions {
  readonly space: Space;
  /** Part of the places that one pool may have, in all proxies together. */
  readonly poolShare: number;
  /** Granted beyond what was wanted, to direct sessions while there are plenty, so that not each of them asks. */
  readonly ahead: number;
}

/** A proxy, as the broker sees it. */
export interface Holder {
  tell(message: PlaceTell): void;
}

interface Account {
  readonly holder: Holder;
  readonly member: string;
  held: number;
  wanted: number;
}

/** The places of one endpoint. */
interface Pot {
  limit: number;
  held: number;
  readonly accounts: Map<Holder, Map<string, Account>>;
  /** What each pool has in all proxies. A tenant may have many pools, and this process little time. */
  readonly heldByPool: Map<string, number>;
  /** Those that want some; who was given one goes to the end. */
  readonly wanting: Set<Account>;
  /** As it was last told, and to whom. */
  told: string;
  readonly toldTo: Set<Holder>;
}

const noShortageText = JSON.stringify(noShortage);
/** More than any server takes. */
const unbounded = 1_000_000;
/** "Plenty" means that an eighth of what is free is enough. */
const plenty = 8;

export class PlaceBroker {
  readonly #options: BrokerOptions;
  readonly #pots = new Map<string, Pot>();

  constructor(options: BrokerOptions) {
    this.#options = options;
  }

  /** Endpoints of which somebody has or wants places. */
  get size(): number {
    return this.#pots.size;
  }

  /** Places that are granted now. */
  held(endpointId: string): number {
    return this.#pots.get(endpointId)?.held ?? 0;
  }

  ask(holder: Holder, message: PlaceAsk): void {
    const { endpointId } = message;
    const pot = this.#pots.get(endpointId) ?? newPot();
    this.#pots.set(endpointId, pot);
    if (message.ask === 'limit') this.#learn(endpointId, pot, message.limit);
    else {
      const account = accountOf(pot, holder, message.member);
      if (message.ask === 'want') {
        if (message.limit !== null && pot.limit === Number.POSITIVE_INFINITY) pot.limit = message.limit;
        account.wanted = Math.max(0, account.wanted + message.count);
        if (account.wanted > 0) pot.wanting.add(account);
        else pot.wanting.delete(account);
      } else hold(pot, account, -Math.min(account.held, message.count));
      if (account.held === 0 && account.wanted === 0) this.#forget(endpointId, pot, account);
    }
    this.#serve(endpointId, pot);
  }

  /** The proxy is gone, and with it every connection that it had. */
  leave(holder: Holder): void {
    for (const [endpointId, pot] of this.#pots) {
      for (const account of pot.accounts.get(holder)?.values() ?? []) {
        hold(pot, account, -account.held);
        pot.wanting.delete(account);
      }
      pot.accounts.delete(holder);
      pot.toldTo.delete(holder);
      this.#serve(endpointId, pot);
    }
  }

  /** Whoever has nothing here does not hear of a shortage any more, and so must not remember one. */
  #forget(endpointId: string, pot: Pot, { holder, member }: Account): void {
    const accounts = pot.accounts.get(holder);
    accounts?.delete(member);
    if (accounts?.size !== 0) return;
    pot.accounts.delete(holder);
    if (!pot.toldTo.delete(holder) || pot.told === noShortageText) return;
    holder.tell({ tell: 'short', ...this.#place(endpointId), shortage: noShortage });
  }

  #learn(endpointId: string, pot: Pot, limit: number): void {
    if (pot.limit === limit) return;
    pot.limit = limit;
    for (const holder of pot.accounts.keys()) holder.tell({ tell: 'limit', ...this.#place(endpointId), limit });
  }

  #serve(endpointId: string, pot: Pot): void {
    const granted = new Map<Account, number>();
    for (let account = this.#next(pot); account !== undefined; account = this.#next(pot)) {
      account.wanted -= 1;
      pot.wanting.delete(account);
      if (account.wanted > 0) pot.wanting.add(account);
      const count = 1 + (pot.wanting.size === 0 ? this.#ahead(pot, account) : 0);
      hold(pot, account, count);
      granted.set(account, (granted.get(account) ?? 0) + count);
    }
    const limit = Number.isFinite(pot.limit) ? pot.limit : null;
    for (const [{ holder, member }, count] of granted) {
      holder.tell({ tell: 'grant', ...this.#place(endpointId), member, count, limit });
    }
    this.#tellShortage(endpointId, pot);
    if (pot.accounts.size === 0) this.#pots.delete(endpointId);
  }

  /** Who has least; among equals, who has waited longest. */
  #next(pot: Pot): Account | undefined {
    if (pot.held >= pot.limit) return undefined;
    let poorest: Account | undefined;
    for (const account of pot.wanting) {
      if (this.#isAtBound(pot, account.member)) continue;
      if (poorest === undefined || need(account) < need(poorest)) poorest = account;
    }
    return poorest;
  }

  #ahead(pot: Pot, account: Account): number {
    if (account.member !== directMember || !Number.isFinite(pot.limit)) return 0;
    return Math.min(this.#options.ahead, Math.floor((pot.limit - pot.held - 1) / plenty));
  }

  #poolMax(pot: Pot): number {
    return Math.max(1, Math.floor(pot.limit * this.#options.poolShare));
  }

  #isAtBound(pot: Pot, member: string): boolean {
    if (member === directMember) return false;
    return (pot.heldByPool.get(member) ?? 0) >= this.#poolMax(pot);
  }

  #tellShortage(endpointId: string, pot: Pot): void {
    const shortage = this.#shortage(pot);
    const text = JSON.stringify(shortage);
    for (const holder of pot.accounts.keys()) {
      if (text === (pot.toldTo.has(holder) ? pot.told : noShortageText)) continue;
      holder.tell({ tell: 'short', ...this.#place(endpointId), shortage });
    }
    pot.told = text;
    for (const holder of pot.accounts.keys()) pot.toldTo.add(holder);
  }

  #shortage(pot: Pot): Shortage {
    let any: Lack = noShortage.any;
    const members: Record<string, Lack> = {};
    for (const account of pot.wanting) {
      const { member } = account;
      if (this.#isAtBound(pot, member)) members[member] = addTo(members[member], account, fairTo(account, pot));
      else any = addTo(any, account, fairTo(account, pot));
    }
    return { any, members };
  }

  #place(endpointId: string): { space: Space; endpointId: string } {
    return { space: this.#options.space, endpointId };
  }
}

/** A direct session is one of many that want one place each. */
function need({ member, held }: Account): number {
  return member === directMember ? 0 : held;
}

/**
 * What a busy pool may keep while the account waits. One more than the account has: a place that moved would otherwise
 * be wanted back, and connections would be closed and opened for ever. For a direct session, the pools' even share.
 */
function fairTo(account: Account, pot: Pot): number {
  if (account.member !== directMember) return account.held + 1;
  let pools = 0;
  for (const accounts of pot.accounts.values()) pools += accounts.size - (accounts.has(directMember) ? 1 : 0);
  return Math.max(1, Math.floor(Math.min(pot.limit, unbounded) / Math.max(1, pools)));
}

function addTo(lack: Lack | undefined, { wanted }: Account, share: number): Lack {
  if (lack === undefined || lack.count === 0) return { count: wanted, share };
  return { count: lack.count + wanted, share: Math.min(lack.share, share) };
}

function hold(pot: Pot, account: Account, count: number): void {
  account.held += count;
  pot.held += count;
  if (account.member === directMember || count === 0) return;
  const held = (pot.heldByPool.get(account.member) ?? 0) + count;
  if (held > 0) pot.heldByPool.set(account.member, held);
  else pot.heldByPool.delete(account.member);
}

function accountOf(pot: Pot, holder: Holder, member: string): Account {
  const accounts = pot.accounts.get(holder) ?? new Map<string, Account>();
  pot.accounts.set(holder, accounts);
  const account = accounts.get(member) ?? { holder, member, held: 0, wanted: 0 };
  accounts.set(member, account);
  return account;
}

function newPot(): Pot {
  return {
    ...{ limit: Number.POSITIVE_INFINITY, held: 0, accounts: new Map(), heldByPool: new Map() },
    ...{ wanting: new Set(), told: noShortageText, toldTo: new Set() },
  };
}
