import { describe, expect, it } from 'vitest';
import { isPrivateAddress, plainAddress } from '../../lib/ip.ts';
import { defaultLimits, limitsFor } from '../kit/limits.ts';
import { isAllowed, requireAccess, requirePooler } from './access.ts';
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

describe('isPrivateAddress', () => {
  it.each([
    ['127.0.0.1', true],
    ['127.255.255.254', true],
    ['::1', true],
    ['10.0.0.0', true],
    ['10.255.255.255', true],
    ['11.0.0.0', false],
    ['172.15.255.255', false],
    ['172.16.0.0', true],
    ['172.31.255.255', true],
    ['172.32.0.0', false],
    ['192.168.1.1', true],
    ['192.169.0.0', false],
    ['169.254.0.1', true],
    ['100.63.255.255', false],
    ['100.64.0.0', true],
    ['100.127.255.255', true],
    ['100.128.0.0', false],
    ['fc00::1', true],
    ['fdff:ffff::1', true],
    ['fe00::1', false],
    ['fe80::1', true],
    ['fe80::1%eth0', true],
    ['febf::1', true],
    ['fec0::1', false],
    ['2001:db8::1', false],
    ['8.8.8.8', false],
    ['::ffff:10.1.2.3', true],
    ['::ffff:8.8.8.8', false],
    ['0.0.0.0', false],
    ['', false],
    ['localhost', false],
  ])('%s: %s', (address, expected) => {
    expect(isPrivateAddress(address)).toBe(expected);
  });
});

describe('a project that blocks public connections', () => {
  const facts = { verifier: null, disabled: false, allowedIps: ['8.8.8.8', '10.0.0.1'], publicBlocked: true };

  it('refuses a public address even if the list allows it', () => {
    expect(() => requireAccess(facts, '8.8.8.8')).toThrow(
      /^This IP address 8\.8\.8\.8 is not allowed to connect .* blocks public connections/,
    );
  });

  it('admits a private address, unless the list leaves it out', () => {
    expect(() => requireAccess(facts, '10.0.0.1')).not.toThrow();
    expect(() => requireAccess(facts, '10.0.0.2')).toThrow(/Please add it to the allowed list/);
  });
});

describe('requirePooler', () => {
  it('closes the pooled host alone, and only if that was asked for', () => {
    const facts = { verifier: null, disabled: false, allowedIps: [], poolerEnabled: false };
    expect(() => requirePooler(facts, { endpointId: 'ep-a', pooled: true })).toThrow(/pooling is disabled/);
    expect(() => requirePooler(facts, { endpointId: 'ep-a', pooled: false })).not.toThrow();
    expect(() => requirePooler({ ...facts, poolerEnabled: true }, { endpointId: 'ep-a', pooled: true })).not.toThrow();
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
