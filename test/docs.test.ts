/** What the documents take from the code is what the code says; `npm run generate` makes it so. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dumpSchema } from '../scripts/dump-schema.mjs';
import { renderErrors, renderSettings, withSettings } from '../scripts/render-docs.mjs';
import { ConfigError, readConfig } from '../src/config.ts';
import { errorKinds } from '../src/errors.ts';
import { settingDocs } from '../src/setting-docs.ts';
import { makeDatabase, type TestDatabase } from './helpers/database.ts';
import { readSources } from './helpers/source-files.ts';

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
const readme = read('README.md');

describe('the README', () => {
  test('lists every setting', () => {
    expect(readme).toContain(renderSettings(settingDocs));
    expect(withSettings(readme, settingDocs)).toBe(readme);
  });

  test('has the two commands', () => {
    expect(readme).toContain('npm ci && npm start\n');
    expect(readme).toContain('npm ci && npm test\n');
  });

  test('points at files that exist', () => {
    const targets = [...readme.matchAll(/\]\(([^)#:]+)\)/g)].map((match) => match[1] ?? '');
    expect(targets.length).toBeGreaterThan(5);
    for (const target of targets) expect(() => read(target), target).not.toThrow(/ENOENT/);
  });
});

test('every setting that is documented is read, and bad values name it', () => {
  const bad: Record<string, string> = {
    CATNAP_HOME: 'relative/path',
    CATNAP_BIND: 'not an address',
    CATNAP_DOMAIN: 'Not A Name',
    CATNAP_REGION: 'No Region',
    CATNAP_API_KEY: 'short',
    'CATNAP_PG_BIN_<major>': 'relative',
  };
  for (const [name] of settingDocs) {
    const variable = name.replace('<major>', '16');
    const read = () => readConfig({ [variable]: bad[name] ?? 'nonsense' }, { isRoot: true });
    expect(read, name).toThrow(ConfigError);
    expect(read, name).toThrow(variable);
  }
});

test('docs/errors.md is the table of errors', () => {
  expect(read('docs/errors.md')).toBe(renderErrors(errorKinds));
});

test('docs/api.md names every operation that a route has', () => {
  const routes = readSources(['src/api/routes']).filter((file) => !file.isTest);
  const ids = routes.flatMap((file) => [...file.text.matchAll(/operationId: '(\w+)'/g)].map((match) => match[1] ?? ''));
  expect(ids.length).toBeGreaterThan(40);
  const text = read('docs/api.md');
  expect(ids.filter((id) => !text.includes(`\`${id}\``))).toEqual([]);
});

describe('src/db/schema.sql', () => {
  let migrated: TestDatabase;

  beforeAll(async () => {
    migrated = await makeDatabase(1);
  });

  afterAll(() => migrated.drop());

  test('is what the migrations give', async () => {
    expect(read('src/db/schema.sql')).toBe(await dumpSchema(migrated.database.sql));
  });
});
