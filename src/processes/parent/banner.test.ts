import { expect, it } from 'vitest';
import { readConfig } from '../../lib/config.ts';
import { type BannerFacts, renderBanner } from './banner.ts';

const facts: BannerFacts = {
  config: readConfig({ CATNAP_HOME: '/data' }, { isRoot: false }),
  version: '1.2.3',
  newApiKey: null,
  consoleLink: null,
  notes: ['sizes are not enforced'],
  command: 'npx catnap',
  processes: ['api', 'worker', 'proxy'],
  isOnTerminal: true,
};

it('says at the first start how to sign in, and later how to get another link', () => {
  const first = renderBanner({ ...facts, newApiKey: 'napi_1', consoleLink: 'abc' });
  expect(first).toContain('http://localhost:7070/#open=abc  (signs you in, once, within the hour)\n');
  expect(first).toContain('napi_1  (shown once; also in /data/api-key)\n');
  const later = renderBanner(facts);
  expect(later).toContain('http://localhost:7070/  (`npx catnap open` signs you in)\n');
  expect(later).toContain('Note        sizes are not enforced\n');
});

it('leaves secrets out where it is written to a log', () => {
  const logged = renderBanner({ ...facts, newApiKey: 'napi_1', consoleLink: 'abc', isOnTerminal: false });
  expect(logged).not.toMatch(/napi_1|abc/);
  expect(logged).toContain('API key     in /data/api-key\n');
  expect(logged).toContain('http://localhost:7070/  (`npx catnap open` signs you in)\n');
});
