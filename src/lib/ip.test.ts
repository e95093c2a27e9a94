import { expect, test } from 'vitest';
import { clientKey, isBlockWithin, parseIpRule } from './ip.ts';

test('entries of the list of allowed addresses', () => {
  const good = ['1.2.3.4', '10.0.0.0/8', '0.0.0.0/0', '10.0.0.1-10.0.0.9', '::1', '2001:db8::/32', '::1-::5'];
  const bad = [
    '',
    'localhost',
    '1.2.3',
    '1.2.3.4/33',
    '::/129',
    '1.2.3.4/',
    '1.2.3.4-::1',
    '1.2.3.4-',
    '1.2.3.4/8/8',
    '1.2.3.4-5',
  ];
  expect(good.filter((text) => parseIpRule(text) === null)).toEqual([]);
  expect(bad.filter((text) => parseIpRule(text) !== null)).toEqual([]);
});

test.each([
  ['10.1.0.0/16', '10.0.0.0/8', true],
  ['10.0.0.0/8', '10.0.0.0/8', true],
  ['10.0.0.0/8', '10.1.0.0/16', false],
  ['192.168.0.0/16', '10.0.0.0/8', false],
  ['10.0.0.0/8', '0.0.0.0/0', true],
  ['fc00::/7', '0.0.0.0/0', false],
  ['10.0.0.1', '10.0.0.0/8', false],
])('%s within %s: %s', (inner, outer, isWithin) => {
  expect(isBlockWithin(inner, outer)).toBe(isWithin);
});

test.each([
  ['10.1.2.3', '10.1.2.3'],
  ['::ffff:10.1.2.3', '::ffff:10.1.2.3'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8::1', '2001:db8:0:0'],
  ['::1', '0:0:0:0'],
  ['fe80::1%eth0', 'fe80:0:0:0'],
])('%s is counted as %s', (address, key) => expect(clientKey(address)).toBe(key));
