/** Places shared by proxies: any order of wishes, returns and deaths, over channels that take their time. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PlaceBroker } from './broker.ts';
import type { BudgetMember, EndpointBudget } from './budget.ts';
import { isPlaceAsk, type PlaceAsk, type PlaceTell } from './messages.ts';
import { shareBudgets } from './shared-budget.ts';

const endpointId = 'ep-a';

/** A broker and proxies whose messages wait until they are delivered. */
class Wires {
  readonly broker = new PlaceBroker({ space: 'servers', poolShare: 0.9, ahead: 4 });
  readonly #lines = new Set<(() => void)[]>();

  connect() {
    const line: (() => void)[] = [];
    this.#lines.add(line);
    let hear = (_message: PlaceTell) => {};
    const holder = { tell: (message: PlaceTell) => line.push(() => hear(copy(message))) };
    const channel = {
      send: (ask: PlaceAsk) => {
        expect(isPlaceAsk(ask)).toBe(true);
        line.push(() => this.broker.ask(holder, copy(ask)));
      },
      onTell: (listener: (message: PlaceTell) => void) => {
        hear = listener;
      },
    };
    const budgets = shareBudgets('servers', channel);
    const die = () => {
      this.#lines.delete(line);
      this.broker.leave(holder);
    };
    return { budgets, die };
  }

  /** In order on each line, as a channel is; which line is next does not matter to anybody. */
  deliver(most = 10_000): void {
    for (let left = most; left > 0; ) {
      const busy = [...this.#lines].filter((line) => line.length > 0);
      if (busy.length === 0) return;
      for (const line of busy) {
        line.shift()?.();
        left -= 1;
      }
    }
    if (most === 10_000) throw new Error('messages go on for ever');
  }
}

const copy = <T>(message: T): T => JSON.parse(JSON.stringify(message));

/** A pool that opens and closes connections at a word; what is idle may be asked back. */
class TestPool implements BudgetMember {
  readonly name: string;
  readonly #budget: EndpointBudget;
  wanted = 0;
  busy = 0;
  idleCount = 0;

  constructor(name: string, budget: EndpointBudget) {
    this.name = name;
    this.#budget = budget;
    budget.join(this);
  }

  get size(): number {
    return this.busy + this.idleCount;
  }

  want(): void {
    this.wanted += 1;
    this.#budget.request(() => {
      this.wanted -= 1;
      this.busy += 1;
    }, this);
  }

  /** A transaction is over: as a pool would, it goes on with the next client, rests, or lets the connection go. */
  finish(): void {
    if (this.busy === 0) return;
    const lets = this.#budget.isWanted(this, this.size, this.wanted > 0);
    if (!lets && this.wanted > 0) return;
    this.busy -= 1;
    if (lets) this.#budget.release(this);
    else this.idleCount += 1;
  }

  giveUpIdle(): void {
    this.idleCount -= 1;
    this.#budget.release(this);
  }
}

function proxyWith(wires: Wires, limit: number) {
  const { budgets, die } = wires.connect();
  const budget = budgets.of(endpointId);
  budget.learnLimit(limit);
  let direct = 0;
  return {
    budgets,
    budget,
    die,
    pool: (name: string) => new TestPool(name, budget),
    wantDirect: () => budget.request(() => (direct += 1)),
    endDirect: () => {
      if (direct === 0) return;
      direct -= 1;
      budget.release();
    },
    direct: () => direct,
  };
}

describe('places of several proxies', () => {
  it('are never more than there are, nor nine tenths of them for one pool', () => {
    const wires = new Wires();
    const [one, other] = [proxyWith(wires, 20), proxyWith(wires, 20)];
    const pools = [one.pool('p'), other.pool('p')];
    for (const pool of pools) for (let n = 0; n < 15; n++) pool.want();
    wires.deliver();
    expect(pools.map((pool) => pool.size)).toEqual([9, 9]);
    for (let n = 0; n < 3; n++) one.wantDirect();
    wires.deliver();
    expect(one.direct()).toBe(2);
    expect(wires.broker.held(endpointId)).toBe(20);
  });

  it('go to whoever waits, when somebody else has idle ones', () => {
    const wires = new Wires();
    const [one, other] = [proxyWith(wires, 10), proxyWith(wires, 10)];
    const [rich, poor, another] = [one.pool('p'), other.pool('p'), other.pool('q')];
    for (let n = 0; n < 9; n++) rich.want();
    wires.deliver();
    expect(rich.busy).toBe(9);
    for (let n = 0; n < 9; n++) rich.finish();
    poor.want();
    wires.deliver();
    expect([rich.size, poor.size]).toEqual([8, 1]);
    for (let n = 0; n < 3; n++) another.want();
    other.wantDirect();
    wires.deliver();
    expect([another.size, other.direct()]).toEqual([3, 1]);
    expect(wires.broker.held(endpointId)).toBeLessThanOrEqual(10);
  });

  it('are shared evenly by busy pools, which then rest in peace', () => {
    const wires = new Wires();
    const [one, other] = [proxyWith(wires, 11), proxyWith(wires, 11)];
    const [rich, poor] = [one.pool('p'), other.pool('p')];
    for (let n = 0; n < 20; n++) rich.want();
    wires.deliver();
    for (let n = 0; n < 20; n++) poor.want();
    let moves = 0;
    for (let n = 0; n < 200; n++) {
      const before = [rich.size, poor.size].join();
      rich.finish();
      poor.finish();
      wires.deliver();
      if ([rich.size, poor.size].join() !== before) moves += 1;
    }
    expect([rich.size, poor.size].sort()).toEqual([4, 5]);
    expect(moves).toBeLessThan(10);
  });

  it('are not asked for any more when nobody waits, nor of a proxy that had given all of them back', () => {
    const wires = new Wires();
    const [one, other] = [proxyWith(wires, 2), proxyWith(wires, 2)];
    const pool = one.pool('p');
    const isAsked = () => one.budget.isWanted(pool, 1, false);
    for (let n = 0; n < 2; n++) one.wantDirect();
    wires.deliver();
    for (let n = 0; n < 3; n++) other.wantDirect();
    wires.deliver();
    expect(isAsked()).toBe(true);
    for (let n = 0; n < 2; n++) one.endDirect();
    wires.deliver();
    expect(other.direct()).toBe(2);
    for (let n = 0; n < 3; n++) {
      other.endDirect();
      wires.deliver();
    }
    pool.want();
    wires.deliver();
    expect([pool.size, isAsked()]).toEqual([1, false]);
  });

  it('of a proxy that ends are free at once', () => {
    const wires = new Wires();
    const [one, other] = [proxyWith(wires, 10), proxyWith(wires, 10)];
    const [gone, left] = [one.pool('p'), other.pool('p')];
    for (let n = 0; n < 9; n++) gone.want();
    wires.deliver();
    for (let n = 0; n < 9; n++) left.want();
    wires.deliver();
    expect(left.size).toBe(0);
    one.die();
    wires.deliver();
    expect(left.size).toBe(9);
  });

  it('follow the size of the server, and are forgotten when nobody has any', () => {
    const wires = new Wires();
    const [one, other] = [proxyWith(wires, 10), proxyWith(wires, 10)];
    for (let n = 0; n < 12; n++) one.wantDirect();
    wires.deliver();
    expect(one.direct()).toBe(10);
    other.budget.learnLimit(11);
    wires.deliver();
    expect([one.direct(), one.budget.limit]).toEqual([11, 11]);
    for (let n = 0; n < 20; n++) {
      one.endDirect();
      wires.deliver();
    }
    for (const { budgets } of [one, other]) budgets.sweep();
    wires.deliver();
    expect(wires.broker.size).toBe(0);
  });

  it('hold in any order of events, and nobody who wants one is forgotten', () => {
    const event = fc.tuple(
      fc.constantFrom('want', 'finish', 'direct', 'end', 'withdraw', 'deliver', 'sweep', 'die'),
      fc.nat(2),
      fc.nat(1),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 150 }), fc.integer({ min: 2, max: 12 }), (events, limit) => {
        const wires = new Wires();
        const start = () => {
          const proxy = proxyWith(wires, limit);
          return { ...proxy, pools: [proxy.pool('p'), proxy.pool('q')], withdraw: [(): unknown => undefined] };
        };
        const proxies = [start(), start(), start()];
        wires.deliver();
        const check = () => {
          expect(wires.broker.held(endpointId)).toBeLessThanOrEqual(limit);
          const used = proxies.reduce((sum, { budget }) => sum + budget.used, 0);
          expect(used).toBeLessThanOrEqual(wires.broker.held(endpointId));
          for (const at of [0, 1]) {
            const size = proxies.reduce((sum, { pools }) => sum + (pools[at]?.size ?? 0), 0);
            expect(size).toBeLessThanOrEqual(Math.max(1, Math.floor(limit * 0.9)));
          }
        };
        for (const [what, at, which] of events) {
          const proxy = proxies[at];
          const pool = proxy?.pools[which];
          if (proxy === undefined || pool === undefined) continue;
          if (what === 'want') pool.want();
          if (what === 'finish') pool.finish();
          if (what === 'direct') proxy.withdraw.push(proxy.wantDirect());
          if (what === 'end') proxy.endDirect();
          if (what === 'withdraw') proxy.withdraw.pop()?.();
          if (what === 'deliver') wires.deliver(5);
          if (what === 'sweep') proxy.budgets.sweep();
          if (what === 'die') {
            proxy.die();
            proxies[at] = start();
          }
          check();
        }
        // When transactions come to their ends, everybody is served.
        for (let n = 0; n < 200; n++) {
          wires.deliver();
          for (const { pools, endDirect } of proxies) {
            endDirect();
            for (const pool of pools) pool.finish();
          }
          check();
        }
        const starving = proxies.flatMap(({ pools }) => pools.filter(({ wanted, size }) => wanted > 0 && size === 0));
        expect(limit < 8 ? [] : starving.map(({ name }) => name)).toEqual([]);
      }),
      { numRuns: 50 },
    );
  });
});
