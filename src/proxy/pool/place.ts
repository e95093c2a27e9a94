/** A direct session's place in its endpoint's budget. */
import { CatnapError } from '../../errors.ts';
import type { EndpointBudget } from './budget.ts';

/** The function gives the place back. Rejects in Postgres' own words when none becomes free in time. */
export function takePlace(budget: EndpointBudget, ms: number, signal: AbortSignal): Promise<() => void> {
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
    const timer = setTimeout(
      () => giveUp(new CatnapError('too_many_connections', 'sorry, too many clients already')),
      ms,
    );
    signal.addEventListener('abort', onAbort, { once: true });
    const withdraw = budget.request(() => {
      settle();
      resolve(() => budget.release());
    });
  });
}
