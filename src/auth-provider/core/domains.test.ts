import { expect, test } from 'vitest';
import { processorMs } from '../../../test/helpers/processor-time.ts';
import { isTrustedUrl, requireDomain } from './domains.ts';

const isTrusted = (domain: string, url: string) =>
  isTrustedUrl({ allowLocalhost: false }, [{ domain: requireDomain(domain, 'domain') }], url);

test.each([
  ['https://a.example', 'https://a.example/back', true],
  ['https://A.example', 'https://a.EXAMPLE', true],
  ['https://a.example', 'https://b.a.example', false],
  ['https://a.example', 'http://a.example', false],
  ['https://a.example', 'https://a.example:8443', false],
  ['https://*.example', 'https://a.example', true],
  ['https://*.example', 'https://b.a.example', false],
  ['https://**.example', 'https://b.a.example', true],
  ['https://**.example', 'https://b.a.example.evil', false],
  ['https://**.example', 'https://bexample', false],
  ['https://a*.*.example', 'https://ab.c.example', true],
  ['https://a*.*.example', 'https://ab.c.d.example', false],
  ['https://*-x.**.example', 'https://a-x.b-x.c.example', true],
  ['http://[::1]:80', 'http://[::1]', true],
])('%s and %s', (domain, url, expected) => {
  expect(isTrusted(domain, url)).toBe(expected);
});

test('a host name made to be slow is decided at once', () => {
  const ms = processorMs(() => {
    for (let i = 0; i < 100; i += 1) {
      expect(isTrusted('https://*a*a*b', `https://${'a'.repeat(1_900)}`)).toBe(false);
      expect(isTrusted('https://**a**a**b', `https://${'a'.repeat(250)}`)).toBe(false);
    }
  });
  expect(ms).toBeLessThan(2_000);
});
