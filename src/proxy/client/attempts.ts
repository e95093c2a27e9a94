/** Counts failed authentications by address, so that passwords cannot be tried out at the speed of the machine. */
import type { Clock } from '../../lib/clock.ts';

const windowMs = 60_000;
/** Bounds the memory of a scan from many addresses; the oldest are forgotten first. */
const addressesMax = 10_000;

export interface Attempts {
  isExhausted(address: string): boolean;
  recordFailure(address: string): void;
}

export function createAttempts(clock: Clock, failuresPerMinute: number): Attempts {
  const failures = new Map<string, { count: number; sinceMs: number }>();

  const current = (key: string) => {
    const entry = failures.get(key);
    if (entry && clock.now().getTime() - entry.sinceMs < windowMs) return entry;
    failures.delete(key);
    return undefined;
  };

  return {
    isExhausted: (address) => (current(addressKey(address))?.count ?? 0) >= failuresPerMinute,
    recordFailure(address) {
      const key = addressKey(address);
      const entry = current(key);
      if (entry) {
        entry.count += 1;
        return;
      }
      failures.set(key, { count: 1, sinceMs: clock.now().getTime() });
      const oldest = failures.keys().next().value;
      if (failures.size > addressesMax && oldest !== undefined) failures.delete(oldest);
    },
  };
}

/** One IPv6 host commands a whole /64. */
export function addressKey(address: string): string {
  if (!address.includes(':')) return address;
  const [head = '', tail] = address.split('::', 2);
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const end = tail === '' ? [] : tail.split(':');
    while (groups.length + end.length < 8) groups.push('0');
  }
  return groups.slice(0, 4).join(':');
}
