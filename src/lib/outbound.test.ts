import { describe, expect, test } from 'vitest';
import { isInternalAddress, refusalOfUrl } from './outbound.ts';

const strict = { allowPrivate: false, ownOrigin: 'https://catnap.example.com' };
const lenient = { ...strict, allowPrivate: true };
const onlyHttps = 'must start with https://';
const onlyPublic = 'must not be an address of this machine or of a private network';

describe('a URL', () => {
  test.each([
    ['https://keys.example.com/jwks.json', null, null],
    ['https://catnap.example.com/stack/jwks.json', null, null],
    ['http://keys.example.com/jwks.json', onlyHttps, onlyHttps],
    ['http://localhost:1234/', onlyHttps, null],
    ['http://[::1]:1234/', onlyHttps, null],
    ['ftp://localhost/', onlyHttps, 'must start with https:// or http://'],
    ['http://10.0.0.1/', onlyHttps, onlyHttps],
    ['https://localhost/', onlyPublic, null],
    ['https://x.localhost/', onlyPublic, null],
    ['https://127.1/', onlyPublic, null],
    ['https://0x7f000001/', onlyPublic, null],
    ['https://169.254.169.254/latest/meta-data', onlyPublic, null],
    ['https://[fd00::1]/', onlyPublic, null],
    ['https://localhost./', onlyPublic, null],
    ['https://[::ffff:0:127.0.0.1]/', onlyPublic, null],
    ['https://[::ffff:127.0.0.1]/', onlyPublic, null],
    ['https://user:word@keys.example.com/', 'must have no user, password or fragment', undefined],
    ['file:///etc/passwd', onlyHttps, onlyHttps],
    ['keys', 'must be a URL', undefined],
    [`https://keys.example.com/${'x'.repeat(2_048)}`, 'must have at most 2048 characters', undefined],
  ])('%s', (url, refusal, withPrivate) => {
    expect(refusalOfUrl(url, strict)).toBe(refusal);
    expect(refusalOfUrl(url, lenient)).toBe(withPrivate === undefined ? refusal : withPrivate);
  });
});

test('plain HTTP leaves this machine only where it may, and where private addresses are allowed', () => {
  const plain = 'http://10.0.0.1/hook';
  expect(refusalOfUrl(plain, { ...lenient, allowPlain: true })).toBe(null);
  expect(refusalOfUrl(plain, { ...strict, allowPlain: true })).toBe(onlyHttps);
});

test.each([
  ['8.8.8.8', false],
  ['2606:4700::1111', false],
  ['10.1.2.3', true],
  ['100.100.0.1', true],
  ['172.31.255.255', true],
  ['172.32.0.1', false],
  ['192.168.1.1', true],
  ['0.0.0.0', true],
  ['::', true],
  ['::1', true],
  ['::ffff:10.0.0.1', true],
  ['::ffff:a00:1', true],
  ['64:ff9b::a00:1', true],
  ['fe80::1', true],
  ['fec0::1', true],
  ['2001:0:4136:e378::1', true],
  ['::ffff:0:a00:1', true],
  ['keys.example.com', false],
])('%s is internal: %s', (address, expected) => {
  expect(isInternalAddress(address)).toBe(expected);
});
