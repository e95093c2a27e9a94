/** What the documents take from the code is what the code says; `npm run generate` makes it so. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dumpSchema, tablesOfRooms } from '../scripts/dump-schema.mjs';
import { renderErrors, renderSettings, withSettings } from '../scripts/render-docs.mjs';
import { ConfigError, readConfig } from '../src/lib/config.ts';
import { errorKinds } from '../src/lib/errors.ts';
import { settingDocs } from '../src/lib/setting-docs.ts';
import { makeDatabase, type TestDatabase } from './helpers/database.ts';
import { readSources } from './helpers/source-files.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');
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
});

describe('the documents', () => {
  const inFolder = (folder: string) =>
    readdirSync(join(root, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `${folder}/${name}`);
  const decisions = inFolder('docs/decisions');
  const pages = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...inFolder('docs'), ...decisions];
  const links = pages.flatMap((page) =>
    [...read(page).matchAll(/\]\(([^)\s]+)\)/g)]
      .map((match) => match[1] ?? '')
      .filter((target) => !/^[a-z]+:/.test(target))
      .map((target) => ({ page, target })),
  );

  test('lead to files and headings that exist', () => {
    expect(links.length).toBeGreaterThan(40);
    const dangling = links.filter(({ page, target }) => {
      const [path = '', heading] = target.split('#');
      const file = path === '' ? page : join(dirname(page), path);
      return !existsSync(join(root, file)) || (heading !== undefined && !anchors(read(file)).includes(heading));
    });
    expect(dangling).toEqual([]);
  });

  test('are all linked from another one', () => {
    const reached = new Set(links.map(({ page, target }) => join(dirname(page), target.split('#')[0] ?? '')));
    expect(inFolder('docs').filter((page) => !reached.has(page))).toEqual([]);
  });

  test('number the decisions, each number once', () => {
    const numbers = decisions.map((page) => /(\d{3})-[^/]*$/.exec(page)?.[1]).sort();
    expect(numbers).toEqual(numbers.map((_, index) => String(index + 1).padStart(3, '0')));
    for (const page of decisions) expect(read(page)).toMatch(new RegExp(`^# ${/\d{3}/.exec(page)?.[0]}: `));
  });
});

describe('files named in backticks exist', () => {
  const folders = ['src', 'test', 'docs', 'scripts', 'bench', 'console', 'bin', '.ci'];
  const below = (folder: string) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.parentPath.includes('node_modules'))
      .map((entry) => relative(root, join(entry.parentPath, entry.name)));
  const paths = [
    ...readdirSync(root, { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => entry.name),
    ...folders.flatMap(below),
  ];
  const tracked = [...paths, ...new Set(paths.flatMap(foldersOf))];
  const documents = paths.filter((path) => path.endsWith('.md')).map((path) => ({ path, text: read(path) }));
  const sources = readSources(['src', 'test', 'scripts', 'console']).map(({ path, text }) => ({
    path,
    text: commentsOf(text),
  }));

  /** A whole path, or the end of one; `<noun>` stands for any name. */
  function exists(name: string): boolean {
    const pattern = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/<\w+>/g, '[^/]+');
    const end = new RegExp(`(^|/)${pattern}$`);
    return tracked.some((path) => end.test(path));
  }

  const dangling = (files: readonly { readonly path: string; readonly text: string }[]) =>
    files.flatMap(({ path, text }) =>
      fileNames(text)
        .filter((name) => !exists(name))
        .map((name) => `${path}: ${name}`),
    );

  test('in documents', () => {
    expect(documents.flatMap(({ text }) => fileNames(text)).length).toBeGreaterThan(40);
    expect(dangling(documents)).toEqual([]);
  });

  test('in comments', () => {
    expect(sources.flatMap(({ text }) => fileNames(text)).length).toBeGreaterThan(20);
    expect(dangling(sources)).toEqual([]);
  });

  test('and a name that is gone is noticed', () => {
    expect(fileNames('see `src/gone.ts`, `a b.ts`, `storage.json` and `src/core`')).toEqual([
      'src/gone.ts',
      'src/core',
    ]);
    expect(dangling([{ path: 'x.md', text: '`src/gone.ts` `src/db/<noun>.ts` `tidy.test.ts` `src/core/`' }])).toEqual([
      'x.md: src/gone.ts',
    ]);
  });
});

test('docs/decisions/006-dependencies.md has a word about every dependency', () => {
  const { dependencies, devDependencies }: Record<string, Record<string, string>> = JSON.parse(read('package.json'));
  const text = read('docs/decisions/006-dependencies.md');
  const named = (name: string) => text.includes(`\`${name}\``) || text.includes(`\`${dirname(name)}/*\``);
  // An alias, as for two versions side by side, is called by the package that it stands for.
  const packages = Object.entries({ ...dependencies, ...devDependencies }).map(
    ([name, version]) => /^npm:(.+)@/.exec(version)?.[1] ?? name,
  );
  expect(packages.length).toBeGreaterThan(40);
  expect(packages.filter((name) => !named(name))).toEqual([]);
});

/** What looks like a file of this repository: a path below one of its folders, or the name of a source or document. */
function fileNames(text: string): string[] {
  return [...text.matchAll(/`([\w@.<>/-]+)`/g)]
    .map((match) => (match[1] ?? '').replace(/\/$/, ''))
    .filter(
      (name) =>
        /^(src|test|docs|scripts|bench|console|\.ci)\//.test(name) || /^[\w][^@]*\.(tsx?|mjs|sql|css|md)$/.test(name),
    );
}

function foldersOf(path: string): string[] {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'));
}

function commentsOf(text: string): string {
  return [...text.matchAll(/\/\*\*[\s\S]*?\*\/|^\s*\/\/.*$/gm)].map((match) => match[0]).join('\n');
}

/** Names that headings can be linked by. */
function anchors(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map((match) =>
    (match[1] ?? '')
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

test('every setting that is documented is read, and bad values name it', () => {
  const bad: Record<string, string> = {
    CATNAP_HOME: 'relative/path',
    CATNAP_BIND: 'not an address',
    CATNAP_DOMAIN: 'Not A Name',
    CATNAP_REGION: 'No Region',
    CATNAP_API_KEY: 'short',
    CATNAP_BACKUP_S3_REGION: 'No Region',
    CATNAP_KUBERNETES_NAMESPACE: 'No Name',
    CATNAP_KUBERNETES_STORAGE_CLASS: 'No Name',
    CATNAP_KUBERNETES_SNAPSHOT_CLASS: 'No Name',
    'CATNAP_PG_BIN_<major>': 'relative',
    CATNAP_EXTENSIONS_ALLOW: 'Not A Name',
  };
  for (const [name] of settingDocs) {
    const variable = name.replace('<major>', '16');
    const read = () => readConfig({ [variable]: bad[name] ?? 'nonsense' }, { isRoot: true });
    expect(read, name).toThrow(ConfigError);
    expect(read, name).toThrow(variable);
  }
});

test('CONTRIBUTING.md names every variable that tests read', () => {
  const named = readSources(['src', 'test']).flatMap(({ text }) => [...text.matchAll(/\benv\.(CATNAP_\w+)/g)]);
  const variables = [...new Set(named.map(([, name = '']) => name))].filter((name) => /_(TEST|SOAK)_/.test(name));
  expect(variables.length).toBeGreaterThan(15);
  expect(variables.filter((name) => !read('CONTRIBUTING.md').includes(name))).toEqual([]);
});

test('docs/errors.md is the table of errors', () => {
  expect(read('docs/errors.md')).toBe(renderErrors(errorKinds));
});

test('docs/api.md or docs/compatibility.md names every operation that a route has', () => {
  const routes = readSources(['src/api/routes']).filter((file) => !file.isTest);
  const ids = routes.flatMap((file) => [...file.text.matchAll(/operationId: '(\w+)'/g)].map((match) => match[1] ?? ''));
  expect(ids.length).toBeGreaterThan(40);
  const text = read('docs/api.md') + read('docs/compatibility.md');
  expect(ids.filter((id) => !text.includes(`\`${id}\``))).toEqual([]);
});

describe('schema.sql', () => {
  let migrated: TestDatabase;

  beforeAll(async () => {
    migrated = await makeDatabase(1);
  });

  afterAll(() => migrated.drop());

  test.each(Object.keys(tablesOfRooms))('of src/%s is what its migrations give', async (room) => {
    expect(read(`src/${room}/schema.sql`)).toBe(await dumpSchema(migrated.database.sql, room));
  });
});
