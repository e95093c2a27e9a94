/**
 * Limits on attempts. Accounts are always guarded; addresses only where the port is exposed (then a whole office behind
 * one address shares its allowance). In this process only, like the limits of the API.
 */
import { clientKey } from '../../lib/ip.ts';
import { createTokenBuckets } from '../../lib/token-buckets.ts';
import { tooMany } from '../http/errors.ts';
import type { AuthProviderParts } from './parts.ts';

const minute = 60;
/** Each bucket is about 100 bytes. */
const bucketsMax = 20_000;

/** Guesses at one account: a few from one network, more from all, so that an attacker cannot easily lock it. */
const perAccountAndAddress = { capacity: 10, perSecond: 2 / minute };
const perAccount = { capacity: 100, perSecond: 10 / minute };
/** Mails to one recipient. */
const mails = { capacity: 5, perSecond: 1 / (5 * minute) };

const perAddress = {
  /** Everything that needs no secret: publishable keys are public. Also every wrong secret. */
  request: { capacity: 600, perSecond: 20 },
  signIn: { capacity: 60, perSecond: 1 },
  signUp: { capacity: 30, perSecond: 0.5 },
  refresh: { capacity: 300, perSecond: 10 },
  code: { capacity: 30, perSecond: 0.2 },
};

export interface Limits {
  /** Counts an attempt at an account; `succeeded` takes it back. */
  guess(account: string, address: string): { succeeded(): void };
  mail(recipient: string): void;
  address(what: keyof typeof perAddress, address: string): void;
}

export function createLimits({ clock, limitsAddresses }: AuthProviderParts): Limits {
  const buckets = createTokenBuckets(perAccount, bucketsMax);
  const take = (name: string, shape: { capacity: number; perSecond: number }) => {
    const wait = buckets.take(name, clock.now().getTime(), shape);
    if (wait > 0) throw tooMany(wait);
  };
  return {
    guess(account, address) {
      const names = [`from ${clientKey(address)} at ${account}`, `at ${account}`] as const;
      take(names[0], perAccountAndAddress);
      take(names[1], perAccount);
      return { succeeded: () => names.forEach((name) => void buckets.give(name)) };
    },
    mail: (recipient) => take(`mail ${recipient}`, mails),
    address: (what, address) => {
      if (limitsAddresses) take(`${what} ${clientKey(address)}`, perAddress[what]);
    },
  };
}
