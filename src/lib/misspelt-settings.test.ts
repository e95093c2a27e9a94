import { expect, test } from 'vitest';
import { findMisspeltSettings, misspeltWords } from './misspelt-settings.ts';
import { settingDocs } from './setting-docs.ts';

test('a variable that is nearly a setting is named with the setting', () => {
  const env = { CATNAP_HTTP_PROT: '80', CATNAP_PG_BINS_16: '/', CATNAP_PROXYS: '2', CATNAP_BIND: '::1', PATH: '/bin' };
  expect(findMisspeltSettings(env)).toEqual([
    { name: 'CATNAP_HTTP_PROT', meant: 'CATNAP_HTTP_PORT' },
    { name: 'CATNAP_PG_BINS_16', meant: 'CATNAP_PG_BIN_16' },
    { name: 'CATNAP_PROXYS', meant: 'CATNAP_PROXIES' },
  ]);
  expect(misspeltWords({ name: 'CATNAP_HOMR', meant: 'CATNAP_HOME' })).toBe(
    'CATNAP_HOMR is set, but no setting has that name: is CATNAP_HOME meant?',
  );
});

test('neither a setting nor a name of somebody’s own is', () => {
  const settings = settingDocs.map(([name]) => [name.replace('<major>', '16'), 'set']);
  expect(findMisspeltSettings(Object.fromEntries(settings))).toEqual([]);
  const own = [
    'CATNAP_PROJECT',
    'CATNAP_BRANCH',
    'CATNAP_BRANCH_ID',
    'CATNAP_DATABASE',
    'CATNAP_API_URL',
    'CATNAP_PARENT',
  ];
  expect(findMisspeltSettings(Object.fromEntries(own.map((name) => [name, 'set'])))).toEqual([]);
});
