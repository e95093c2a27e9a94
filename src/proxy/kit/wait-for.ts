/** How one client waits for a compute: for a limited time, and until it leaves. The work itself goes on without it. */
import { CatnapError } from '../../lib/errors.ts';

/** Rejects with a CatnapError when the time is up, or with the signal's reason. */
export function waitFor<T>(shared: Promise<T>, ms: number, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stopWaiting = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
    };
    const onAbort = () => {
      stopWaiting();
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      stopWaiting();
      reject(new CatnapError('unavailable', `The compute did not wake within ${ms / 1000} seconds; please try again`));
    }, ms);
    signal.addEventListener('abort', onAbort, { once: true });
    shared.then(resolve, reject).finally(stopWaiting);
    if (signal.aborted) onAbort();
  });
}
