/** Permits that proxies share: any order of requests, returns and deaths, over channels that delay their messages. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PermitBroker } from './broker.ts';
import type { BudgetMember, EndpointBudget } from './budget.ts';
import { isPermitRequest, type PermitAnswer, type PermitRequest } from './messages.ts';
import { shareBudgets } from './shared-budget.ts';

const endpointId = 'ep-a';

/** A broker and its proxies; messages stay in their queues until the test delivers them. */
class DelayedChannels {
  readonly broker = new PermitBroker({ permit: 'servers', poolShare: 0.9, ahead: 4 });
  readonly #queues = new Set<(() => void)[]>();

  connect() {
    const queue: (() => void)[] = [];
    this.#queues.add(queue);
    let onAnswer = (_answer: PermitAnswer) => {};
    const holder = { send: (answer: PermitAnswer) => queue.push(() => onAnswer(copy(answer))) };
    const channel = {
      send: (request: PermitRequest) => {
        expect(isPermitRequest(request)).toBe(true);
        queue.push(() => this.broker.handle(holder, copy(request)));
      },
      onAnswer: (listener: (answer: PermitAnswer) => void) => {
        onAnswer = listener;
      },
    };
    const budgets = shareBudgets('servers', channel);
    const die = () => {
      this.#queues.delete(queue);
      this.broker.remove(holder);
    };
    return { budgets, die };
  }

  /** In order within each queue, as a channel delivers; the order among the queues makes no difference. */
  deliver(most = 10_000): void {
    for (let left = most; left > 0; ) {
      const busy = [...this.#queues].filter((queue) => queue.length > 0);
      if (busy.length === 0) return;
      for (const queue of busy) {
        queue.shift()?.();
        left -= 1;
      }
    }
    if (most === 10_000) throw new Error('the messages do not come to an end');
  }
}

const copy = <T>(message: T): T => JSON.parse(JSON.stringify(message));

/** A pool whose connections open and close at once; it closes an idle one when the budget asks for it. */
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

  /** A transaction has ended: the connection serves the next client, becomes idle, or is closed, as in a real pool. */
  finish(): void {
    if (this.busy === 0) return;
    const mustClose = this.#budget.isWanted(this, this.size, this.wanted > 0);
    if (!mustClose && this.wanted > 0) return;
    this.busy -= 1;
    if (mustClose) this.#budget.release(this);
    else this.idleCount += 1;
  }

  giveUpIdle(): void {
    this.idleCount -= 1;
    this.#budget.release(this);
  }
}

function proxyWith(channels: DelayedChannels, limit: number) {
  const { budgets, die } = channels.connect();
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

describe('permits of several proxies', () => {
  it('are never more than the limit, nor more than nine tenths of it for one pool', () => {
    const channels = new DelayedChannels();
    const [one, other] = [proxyWith(channels, 20), proxyWith(channels, 20)];
    const pools = [one.pool('p'), other.pool('p')];
    for (const pool of pools) for (let n = 0; n < 15; n++) pool.want();
    channels.deliver();
    expect(pools.map((pool) => pool.size)).toEqual([9, 9]);
    for (let n = 0; n < 3; n++) one.wantDirect();
    channels.deliver();
    expect(one.direct()).toBe(2);
    expect(channels.broker.held(endpointId)).toBe(20);
  });

  it('move to a pool that waits when another one has idle connections', () => {
    const channels = new DelayedChannels();
    const [one, other] = [proxyWith(channels, 10), proxyWith(channels, 10)];
    const [rich, poor, another] = [one.pool('p'), other.pool('p'), other.pool('q')];
    for (let n = 0; n < 9; n++) rich.want();
    channels.deliver();
    expect(rich.busy).toBe(9);
    for (let n = 0; n < 9; n++) rich.finish();
    poor.want();
    channels.deliver();
    expect([rich.size, poor.size]).toEqual([8, 1]);
    for (let n = 0; n < 3; n++) another.want();
    other.wantDirect();
    channels.deliver();
    expect([another.size, other.direct()]).toEqual([3, 1]);
    expect(channels.broker.held(endpointId)).toBeLessThanOrEqual(10);
  });

  it('are shared evenly by busy pools, and then stop moving', () => {
    const channels = new DelayedChannels();
    const [one, other] = [proxyWith(channels, 11), proxyWith(channels, 11)];
    const [rich, poor] = [one.pool('p'), other.pool('p')];
    for (let n = 0; n < 20; n++) rich.want();
    channels.deliver();
    for (let n = 0; n < 20; n++) poor.want();
    let moves = 0;
    for (let n = 0; n < 200; n++) {
      const before = [rich.size, poor.size].join();
      rich.finish();
      poor.finish();
      channels.deliver();
      if ([rich.size, poor.size].join() !== before) moves += 1;
    }
    expect([rich.size, poor.size].sort()).toEqual([4, 5]);
    expect(moves).toBeLessThan(10);
  });

  it('are not reclaimed once nobody waits, nor from a proxy that had returned all of its own', () => {
    const channels = new DelayedChannels();
    const [one, other] = [proxyWith(channels, 2), proxyWith(channels, 2)];
    const pool = one.pool('p');
    const isReclaimed = () => one.budget.isWanted(pool, 1, false);
    for (let n = 0; n < 2; n++) one.wantDirect();
    channels.deliver();
    for (let n = 0; n < 3; n++) other.wantDirect();
    channels.deliver();
    expect(isReclaimed()).toBe(true);
    for (let n = 0; n < 2; n++) one.endDirect();
    channels.deliver();
    expect(other.direct()).toBe(2);
    for (let n = 0; n < 3; n++) {
      other.endDirect();
      channels.deliver();
    }
    pool.want();
    channels.deliver();
    expect([pool.size, isReclaimed()]).toEqual([1, false]);
  });

  it('of a proxy that dies are free at once', () => {
    const channels = new DelayedChannels();
    const [one, other] = [proxyWith(channels, 10), proxyWith(channels, 10)];
    const [gone, left] = [one.pool('p'), other.pool('p')];
    for (let n = 0; n < 9; n++) gone.want();
    channels.deliver();
    for (let n = 0; n < 9; n++) left.want();
    channels.deliver();
    expect(left.size).toBe(0);
    one.die();
    channels.deliver();
    expect(left.size).toBe(9);
  });

  it('follow the size of the server, and are forgotten when nobody holds or wants one', () => {
    const channels = new DelayedChannels();
    const [one, other] = [proxyWith(channels, 10), proxyWith(channels, 10)];
    for (let n = 0; n < 12; n++) one.wantDirect();
    channels.deliver();
    expect(one.direct()).toBe(10);
    other.budget.learnLimit(11);
    channels.deliver();
    expect([one.direct(), one.budget.limit]).toEqual([11, 11]);
    for (let n = 0; n < 20; n++) {
      one.endDirect();
      channels.deliver();
    }
    for (const { budgets } of [one, other]) budgets.sweep();
    channels.deliver();
    expect(channels.broker.size).toBe(0);
  });

  it('stay within the limit in any order of events, and no request for one is forgotten', () => {
    const event = fc.tuple(
      fc.constantFrom('want', 'finish', 'direct', 'end', 'withdraw', 'deliver', 'sweep', 'die'),
      fc.nat(2),
      fc.nat(1),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 150 }), fc.integer({ min: 2, max: 12 }), (events, limit) => {
        const channels = new DelayedChannels();
        const start = () => {
          const proxy = proxyWith(channels, limit);
          return { ...proxy, pools: [proxy.pool('p'), proxy.pool('q')], withdraw: [(): unknown => undefined] };
        };
        const proxies = [start(), start(), start()];
        channels.deliver();
        const check = () => {
          expect(channels.broker.held(endpointId)).toBeLessThanOrEqual(limit);
          const used = proxies.reduce((sum, { budget }) => sum + budget.used, 0);
          expect(used).toBeLessThanOrEqual(channels.broker.held(endpointId));
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
          if (what === 'deliver') channels.deliver(5);
          if (what === 'sweep') proxy.budgets.sweep();
          if (what === 'die') {
            proxy.die();
            proxies[at] = start();
          }
          check();
        }
        // When the transactions end, every pool gets a connection.
        for (let n = 0; n < 200; n++) {
          channels.deliver();
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
