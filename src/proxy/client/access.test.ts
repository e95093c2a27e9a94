import { describe, expect, it } from 'vitest';
import { plainAddress } from '../../lib/ip.ts';
import { defaultLimits, limitsFor } from '../kit/limits.ts';
import { isAllowed, requireAccess } from './access.ts';
import { createAttempts } from './attempts.ts';

describe('isAllowed', () => {
  it.each([
    [[], '8.8.8.8', true],
    [['8.8.8.8'], '8.8.8.8', true],
    [['8.8.8.8'], '8.8.8.9', false],
    [['10.0.0.0/8', '8.8.8.8'], '10.200.1.1', true],
    [['10.0.0.0/33'], '10.0.0.1', false],
    [['10.0.0.0/'], '10.0.0.1', false],
    [['10.0.0.1-10.0.0.5'], '10.0.0.3', true],
    [['10.0.0.1-10.0.0.5'], '10.0.0.6', false],
    [['10.0.0.5-10.0.0.1'], '10.0.0.3', false],
    [['10.0.0.1-::5'], '10.0.0.1', false],
    [[' 2001:db8::/32 '], '2001:db8::1', true],
    [['2001:db8::1-2001:db8::9'], '2001:db8::5', true],
    [['2001:db8::/32'], '2001:db9::1', false],
    [['0.0.0.0/0'], '8.8.8.8', true],
    [['everybody'], '8.8.8.8', false],
    [['0.0.0.0/0'], '', false],
  ])('%j lets %s in: %s', (list, address, expected) => {
    expect(isAllowed(list, address)).toBe(expected);
  });

  it('sees IPv4 through its IPv6 clothes', () => {
    expect(plainAddress('::ffff:10.1.2.3')).toBe('10.1.2.3');
    expect(plainAddress('::1')).toBe('::1');
  });
});

describe('requireAccess', () => {
  it('names the address, before it says that the endpoint is disabled', () => {
    const facts = { verifier: null, disabled: true, allowedIps: ['10.0.0.1'] };
    expect(() => requireAccess(facts, '10.0.0.2')).toThrow(
      /^This IP address 10.0.0.2 is not allowed to connect to this endpoint\./,
    );
    expect(() => requireAccess(facts, '10.0.0.1')).toThrow(/endpoint is disabled/);
  });
});

describe('attempts', () => {
  it('are counted by address, by /64 for IPv6, and forgotten after a minute', () => {
    let nowMs = 0;
    const attempts = createAttempts({ now: () => new Date(nowMs) }, 2);
    for (const address of ['10.0.0.1', '2001:db8::1', '2001:db8:0:0:ffff::2']) attempts.recordFailure(address);
    expect(attempts.isExhausted('10.0.0.1')).toBe(false);
    attempts.recordFailure('10.0.0.1');
    expect(attempts.isExhausted('10.0.0.1')).toBe(true);
    expect(attempts.isExhausted('10.0.0.2')).toBe(false);
    expect(attempts.isExhausted('2001:db8::abcd')).toBe(true);
    expect(attempts.isExhausted('2001:db8:1::1')).toBe(false);
    nowMs = 60_000;
    expect(attempts.isExhausted('10.0.0.1')).toBe(false);
  });
});

describe('limitsFor', () => {
  it('does not count failures where all clients share one address, unless told to', () => {
    expect(limitsFor('127.0.0.1').failuresPerMinute).toBe(Number.POSITIVE_INFINITY);
    expect(limitsFor('0.0.0.0')).toEqual(defaultLimits);
    expect(limitsFor('127.0.0.1', { failuresPerMinute: 5 }).failuresPerMinute).toBe(5);
  });
});
