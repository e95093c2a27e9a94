/**
 * The fake driver as one actor sees it. A call passes two gates: before its effect, and before its caller hears of it.
 * In between another actor may do anything, and the caller may be gone by then.
 */
import type { FakeDriver } from '../../../src/compute/fake/fake-driver.ts';
import type { ComputeDriver } from '../../../src/compute/interface/driver.ts';
import { ServerRefusalError } from '../../../src/compute/interface/refusal.ts';
import { CatnapError } from '../../../src/lib/errors.ts';
import { type Actor, type Fault, injected } from './actor.ts';

/** Calls that change something, and what must not be changed by two at once. */
const changing: Readonly<Record<string, 'endpointId' | 'branchId'>> = {
  start: 'endpointId',
  suspend: 'endpointId',
  reload: 'endpointId',
  configure: 'endpointId',
  buildReplica: 'endpointId',
  removeCompute: 'endpointId',
  createBranch: 'branchId',
  emptyBranch: 'branchId',
  detachBranch: 'branchId',
  replaceBranch: 'branchId',
  removeBranch: 'branchId',
};

export interface Calls {
  /** Who works on which subject just now. */
  readonly underWay: Map<string, Actor>;
  overlaps(subject: string, one: string, other: string): void;
}

export function gateDriver(actor: Actor, driver: FakeDriver, calls: Calls): ComputeDriver {
  return new Proxy(driver, {
    get: (target, method: keyof ComputeDriver) => {
      const member = Reflect.get(target, method);
      if (typeof member !== 'function') return member;
      return (...words: unknown[]) => call(actor, calls, method, words, () => Reflect.apply(member, target, words));
    },
  });
}

async function call(
  actor: Actor,
  calls: Calls,
  method: string,
  words: readonly unknown[],
  work: () => Promise<unknown>,
): Promise<unknown> {
  fail(await actor.pass(`driver.${method}`, faultsOf(method)));
  const leave = occupy(actor, calls, method, words);
  try {
    const result = await actor.track(work);
    fail(await actor.pass(`driver.${method} done`, ['fail']));
    return result;
  } finally {
    leave();
  }
}

function faultsOf(method: string): readonly Fault[] {
  if (method === 'configure') return ['fail', 'refuse'];
  return method === 'createBranch' ? ['fail', 'full'] : ['fail'];
}

/** What a server says to a change that it does not make. */
export const refusal = `${injected} the server refuses`;

function fail(fault: Fault | null): void {
  if (fault === 'refuse') throw new ServerRefusalError(refusal, '42501');
  if (fault === 'full') throw new CatnapError('disk_full', `${injected} the disk is full`);
  if (fault !== null) throw new Error(`${injected} the machine said no`);
}

/** A crashed actor does not work on anything any more, and a stalled one has lost its right to. */
function occupy(actor: Actor, calls: Calls, method: string, [first]: readonly unknown[]): () => void {
  const field = changing[method];
  if (field === undefined || actor.isFree) return () => {};
  const subject = String((first as Record<string, unknown>)[field]);
  const other = calls.underWay.get(subject);
  const isRightful = (one: Actor) => !one.isDead && !one.isStalled;
  if (other !== undefined && other !== actor && isRightful(other) && isRightful(actor)) {
    calls.overlaps(subject, other.name, actor.name);
  }
  calls.underWay.set(subject, actor);
  return () => {
    if (calls.underWay.get(subject) === actor) calls.underWay.delete(subject);
  };
}

/** Starts and stops carry a number by which a late one is refused. */
const fencedCalls = ['driver.start', 'driver.suspend'];

/**
 * The call was made while the lease was held. Others carry it out at once, in the parent or in a server, so it does not
 * wait there for as long as a lease lasts.
 */
export function isCarriedOut({ gates: [next] }: Actor): boolean {
  const label = next?.label ?? '';
  return label.startsWith('driver.') && !label.endsWith(' done') && !fencedCalls.includes(label);
}
