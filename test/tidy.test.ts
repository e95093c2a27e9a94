/** The house rules, as far as a test can see them: who may import whom, sizes, and words that are not used. */
import { describe, expect, test } from 'vitest';
import { blankOut, importsOf, readSources, type SourceFile } from './helpers/source-files.ts';

const all = readSources(['src', 'test', 'scripts', 'console']);
const product = all.filter((file) => file.path.startsWith('src/') && !file.isTest);
/** Runs in browsers, and knows the server by its API alone. */
const consoleFiles = all.filter((file) => file.path.startsWith('console/'));

const fileLinesMax = 300;
const lineLengthMax = 120;

/** They import nothing of the project but each other. */
const leaves = [
  ...['errors', 'ids', 'words', 'log', 'clock', 'config', 'setting-docs', 'secrets', 'scram-verifier', 'certificates'],
  ...['token-buckets', 'page-style'],
].map((name) => `src/${name}.ts`);

/** They put the rooms together, so they may import anything. */
const isWiring = (path: string) => /^src\/((main|role|bin)\.ts$|roles\/|parent\/)/.test(path);

/** Which rooms a room may import, itself and the leaves left out. */
const rooms: Readonly<Record<string, readonly string[]>> = {
  db: [],
  core: ['db'],
  compute: [],
  provider: [],
  operations: ['core', 'db', 'compute', 'provider'],
  reconcilers: ['core', 'db', 'compute', 'provider'],
  api: ['core', 'provider'],
  proxy: [],
  cli: [],
};

/** Rooms that know the wire only: not even the leaves. */
const outsiders = ['cli'];

/** Started as programs, not imported. */
const entries = ['src/bin.ts', 'src/role.ts'];
/** For tests by their nature. */
const testOnly = ['src/compute/fake.ts', 'src/compute/driver-contract.ts'];

const roomOf = (path: string) => /^src\/([^/]+)\//.exec(path)?.[1];

function mayImport(from: string, to: string): boolean {
  if (isWiring(from)) return true;
  if (leaves.includes(from)) return leaves.includes(to);
  const room = roomOf(from);
  const allowed = room === undefined ? undefined : rooms[room];
  if (room === undefined || allowed === undefined) return false;
  if (roomOf(to) === room) return true;
  if (outsiders.includes(room)) return false;
  // The embedded provider keeps tables of its own.
  if (from.startsWith('src/provider/embedded/') && roomOf(to) === 'db') return true;
  return leaves.includes(to) || allowed.includes(roomOf(to) ?? '');
}

describe('imports', () => {
  test('go only where the rooms allow', () => {
    const wrong = product.flatMap((file) =>
      file.imports
        .filter((name) => name.startsWith('src/') && !mayImport(file.path, name))
        .map((name) => `${file.path} imports ${name}`),
    );
    expect(wrong).toEqual([]);
    expect(product.length).toBeGreaterThan(50);
    expect(product.flatMap((file) => file.imports.filter((name) => name.startsWith('src/'))).length).toBeGreaterThan(
      200,
    );
  });

  test('of the product do not lead out of src', () => {
    const wrong = product.flatMap((file) => file.imports.filter((name) => /^(test|scripts|bench|\.\.)\b/.test(name)));
    expect(wrong).toEqual([]);
  });

  test('of the console lead nowhere but to itself and to packages of its own', () => {
    const packages =
      /^(react|react-dom|@tanstack\/react-(query|router)|codemirror|@codemirror\/[\w-]+|@lezer\/[\w-]+|uplot)(\/|$)/;
    const wrong = consoleFiles.flatMap((file) =>
      file.imports
        .filter((name) => !name.startsWith('console/') && !packages.test(name))
        .map((name) => `${file.path} imports ${name}`),
    );
    expect(wrong).toEqual([]);
    expect(consoleFiles.length).toBeGreaterThan(30);
  });

  test('end in .ts and exist', () => {
    const paths = new Set(all.map((file) => file.path));
    const isOurs = (name: string) => /^(src|test|console)\//.test(name) && !name.endsWith('.css');
    const wrong = all.flatMap((file) =>
      file.imports.filter((name) => isOurs(name) && !paths.has(name)).map((name) => `${file.path}: ${name}`),
    );
    expect(wrong).toEqual([]);
  });

  test('reach every file of the product', () => {
    const used = new Set(all.filter((file) => !file.isTest || file.path.startsWith('test/')).flatMap((f) => f.imports));
    const unused = product
      .map((file) => file.path)
      .filter((path) => !used.has(path) && !entries.includes(path) && !testOnly.includes(path));
    expect(unused).toEqual([]);
  });

  test('are seen in every form they have', () => {
    const text = `import a from './a.ts';\nimport {\n  b,\n} from "../b.ts";\nimport 'c';\nexport { d } from './d.ts';
      const e = await ${'import'}('./e.ts');\nimport type { F } from './f.ts';\nimport { type G } from 'node:g';`;
    expect(importsOf('src/x/y.ts', text)).toEqual([
      ...['src/x/a.ts', 'src/b.ts', 'c', 'src/x/d.ts', 'src/x/e.ts', 'src/x/f.ts', 'node:g'],
    ]);
  });
});

describe('sizes', () => {
  test(`files end before line ${fileLinesMax}, except tests`, () => {
    const long = all.filter((file) => !file.isTest && file.text.split('\n').length > fileLinesMax + 1);
    expect(long.map((file) => file.path)).toEqual([]);
  });

  test(`lines end before column ${lineLengthMax}, text inside strings left out`, () => {
    const long = linesOf(all, (file) => file.prose).filter(({ line }) => line.trimEnd().length > lineLengthMax);
    expect(long.map(({ place }) => place)).toEqual([]);
  });

  test('every file says first what it owns, except tests', () => {
    const mute = all.filter((file) => !file.isTest && !file.path.endsWith('.d.mts') && !/^\/\*\*/.test(file.text));
    expect(mute.map((file) => file.path)).toEqual([]);
  });
});

interface Ban {
  readonly words: RegExp;
  readonly why: string;
  readonly in?: (file: SourceFile) => boolean;
}

const inProduct = (file: SourceFile) => product.includes(file) || consoleFiles.includes(file);

const bans: readonly Ban[] = [
  { words: /(:|<|\bas|\||&|,|extends|=)\s*any\b(?!\s*[(:.])/, why: '`any` switches the compiler off', in: inProduct },
  { words: /\bas unknown as\b/, why: 'it switches the compiler off', in: inProduct },
  { words: /^\s*(export )?(const |declare )?enum\s+\w/, why: 'unions of strings do, and erase' },
  { words: /^\s*export default\b/, why: 'names are given once' },
  { words: /\bconsole\./, why: 'there is one logger, and streams that are passed in', in: inProduct },
  {
    words: /\bprocess\.env\b/,
    why: 'config.ts alone reads the environment',
    in: (file) => inProduct(file) && file.path !== 'src/config.ts',
  },
  {
    words: /\bDate\.now\(|\bnew Date\(\s*\)/,
    why: 'core is handed its clock',
    in: (file) => inProduct(file) && file.path.startsWith('src/core/'),
  },
];

describe('words', () => {
  test.each(bans)('$words is not used: $why', (ban) => {
    const files = all.filter((file) => ban.in?.(file) ?? true);
    const found = linesOf(files, (file) => file.code).filter(({ line }) => ban.words.test(line));
    expect(found.map(({ place, line }) => `${place}: ${line.trim()}`)).toEqual([]);
  });

  test('notes to self are kept elsewhere', () => {
    const found = linesOf(all, (file) => file.text).filter(({ line }) => /\b(TO[D]O|FIX[M]E|X[X]X)\b/.test(line));
    expect(found.map(({ place }) => place)).toEqual([]);
  });

  test('tests do not compare a field with a pattern by accident', () => {
    // `toMatchObject({ a: /x/ })` holds for every string; `expect.stringMatching(/x/)` is meant.
    const tests = all.filter((file) => file.isTest);
    const found = linesOf(tests, (file) => file.text).filter(({ line }) => /\.toMatchObject\(.*:\s*\/[^/*]/.test(line));
    expect(found.map(({ place }) => place)).toEqual([]);
  });

  test('are looked for in code, not in comments and strings', () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source code
    const text = 'const a = "any"; // any\nconst b = `x ${f("`")} any`; /* any */ const c = /["\'/]any/;\nlet d: any;';
    const code = blankOut(text);
    expect(code.split('\n').map((line) => line.includes('any'))).toEqual([false, false, true]);
    expect(code).toHaveLength(text.length);
  });
});

function linesOf(files: readonly SourceFile[], read: (file: SourceFile) => string) {
  return files.flatMap((file) =>
    read(file)
      .split('\n')
      .map((line, at) => ({ place: `${file.path}:${at + 1}`, line })),
  );
}
