/** Counts failed authentications by address, so that passwords cannot be tried out at the speed of the machine. */
import { type Clock, minuteMs } from '../../lib/clock.ts';
import { clientKey } from '../../lib/ip.ts';
import { createTokenBuckets } from '../../lib/token-buckets.ts';

/** Bounds the memory that a scan from many addresses takes. */
const addressesMax = 10_000;

export interface Attempts {
  isExhausted(address: string): boolean;
  recordFailure(address: string): void;
}

export function createAttempts(clock: Clock, failuresPerMinute: number): Attempts {
  const failures = createTokenBuckets({ capacity: failuresPerMinute, windowMs: minuteMs }, addressesMax);
  const nowMs = () => clock.now().getTime();
  return {
    isExhausted: (address) => failures.peek(clientKey(address), nowMs()) > 0,
    recordFailure: (address) => void failures.take(clientKey(address), nowMs()),
  };
}
