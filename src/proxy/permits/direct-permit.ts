/** A direct session's place in its endpoint's budget. */
import { CatnapError } from '../../lib/errors.ts';
import type { EndpointBudget } from './budget.ts';

const serverIsFull = 'sorry, too many clients already';

/** The function gives the place back. Rejects when none is free in time, in Postgres' own words or the given ones. */
export function takePlace(
  budget: EndpointBudget,
  ms: number,
  signal: AbortSignal,
  refusal = serverIsFull,
): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const settle = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
    };
    const giveUp = (reason: unknown) => {
      settle();
      withdraw();
      reject(reason);
    };
    const onAbort = () => giveUp(signal.reason);
    const timer = setTimeout(() => giveUp(new CatnapError('too_many_connections', refusal)), ms);
    signal.addEventListener('abort', onAbort, { once: true });
    const withdraw = budget.request(() => {
      settle();
      resolve(() => budget.release());
    });
  });
}
