/** Waits for a permit for one connection that belongs to no pool; see `budget.ts`. */
import { CatnapError } from '../../lib/errors.ts';
import type { EndpointBudget } from './budget.ts';

/** The message of Postgres. */
const serverIsFull = 'sorry, too many clients already';

/** Resolves with the function that releases the permit. Rejects with `refusal` when there is none within `ms`. */
export function takePermit(
  budget: EndpointBudget,
  ms: number,
  signal: AbortSignal,
  refusal = serverIsFull,
): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const stopWaiting = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
    };
    const giveUp = (reason: unknown) => {
      stopWaiting();
      withdraw();
      reject(reason);
    };
    const onAbort = () => giveUp(signal.reason);
    const timer = setTimeout(() => giveUp(new CatnapError('too_many_connections', refusal)), ms);
    signal.addEventListener('abort', onAbort, { once: true });
    const withdraw = budget.request(() => {
      stopWaiting();
      resolve(() => budget.release());
    });
  });
}
