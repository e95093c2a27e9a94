/** The house rules, as far as a test can see them: who may import whom, sizes, and words that are not used. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { usualDeadlineMs } from './helpers/eventually.ts';
import { blankOut, importsOf, readSources, type SourceFile } from './helpers/source-files.ts';
import { testBlocksOf } from './helpers/test-blocks.ts';
import { findUnitTests } from './helpers/unit-tests.ts';

const all = readSources(['src', 'test', 'scripts', 'console']);
const product = all.filter((file) => file.path.startsWith('src/') && !file.isTest);
/** Runs in browsers, and knows the server by its API alone. */
const consoleFiles = all.filter((file) => file.path.startsWith('console/'));

const fileLinesMax = 350;
const lineLengthMax = 120;

/**
 * Which rooms a room may import, itself left out. `lib` holds the leaves, which import nothing of the project but each
 * other. `processes` puts the rooms together, so it may import anything, and so may `bin.ts`, which starts it.
 */
const rooms: Readonly<Record<string, readonly string[]>> = {
  lib: [],
  db: ['lib'],
  core: ['db', 'lib'],
  compute: ['lib'],
  'auth-client': ['lib'],
  'auth-provider': ['db', 'lib'],
  operations: ['core', 'db', 'compute', 'auth-client', 'lib'],
  reconcilers: ['core', 'db', 'compute', 'auth-client', 'auth-provider', 'lib'],
  api: ['core', 'auth-client', 'auth-provider', 'lib'],
  proxy: ['lib'],
  backup: ['lib'],
  copier: ['compute', 'lib'],
  machine: ['backup', 'compute', 'db', 'lib'],
  // Knows the wire only: not even the leaves.
  cli: [],
};

/** Narrower than the rooms: the worker's half and the parent's half of the local driver meet in their channel alone. */
const walls: readonly { readonly from: RegExp; readonly to: RegExp; readonly why: string }[] = [
  {
    from: /^src\/(api|auth-\w+|cli|copier|core|db|operations|processes|proxy|reconcilers)\//,
    to: /^src\/compute\/(?!(interface|server|schema-dump)\/|open-driver)/,
    why: 'which driver there is stays unknown above it',
  },
  { from: /^src\/compute\/local\/driver\//, to: /^src\/compute\/local\/host\//, why: 'the driver has no rights' },
  {
    from: /^src\/compute\/local\/driver\//,
    to: /^src\/(?!compute\/(local\/(driver|channel)|interface|server)\/|lib\/)/,
    why: 'the driver is its channel and SQL',
  },
  {
    from: /^src\/compute\/local\/driver\//,
    to: /^node:(fs|child_process|worker_threads)\b/,
    why: 'files and processes are the work of the host',
  },
  { from: /^src\/compute\/local\/host\//, to: /^src\/compute\/local\/driver\//, why: 'the host runs no SQL' },
  { from: /^src\/compute\/local\/host\//, to: /^src\/compute\/server\//, why: 'the host runs no SQL' },
  { from: /^src\/compute\/local\/host\//, to: /^postgres$/, why: 'the host runs no SQL' },
  {
    from: /^src\/compute\/local\/host\//,
    to: /^(?!src\/compute\/(local\/(host|channel)|interface)\/|src\/lib\/|node:(?!net$|tls$|https?$))/,
    why: 'the host connects to nothing',
  },
  {
    from: /^src\/compute\/local\/channel\//,
    to: /^src\/compute\/(local\/(driver|host)|server)\//,
    why: 'both halves use it',
  },
  {
    from: /^src\/compute\/(interface|server|schema-dump)\//,
    to: /^src\/compute\/(?!(interface|server|schema-dump)\/)/,
    why: 'every driver uses it',
  },
];

/** Started as programs, not imported. */
const entries = [
  'src/bin.ts',
  'src/processes/child.ts',
  // The build loads these two by name.
  'src/processes/cached-modules.ts',
  'src/processes/idle-api.ts',
  // What `catnap/testing` exports.
  'src/processes/testing.ts',
];
/** For tests by their nature. */
const testOnly = ['src/compute/fake/fake-driver.ts', 'src/compute/contract/contract.ts'];

const roomOf = (path: string) => /^src\/([^/]+)\//.exec(path)?.[1];

function mayImport(from: string, to: string): boolean {
  const room = roomOf(from);
  if (from === 'src/bin.ts' || room === 'processes') return true;
  const allowed = room === undefined ? undefined : rooms[room];
  return allowed !== undefined && [room, ...allowed].includes(roomOf(to));
}

const ofProject = (file: SourceFile, part = 'src/') => file.imports.filter((name) => name.startsWith(part));

describe('imports', () => {
  test('go only where the rooms allow', () => {
    const wrong = product.flatMap((file) =>
      ofProject(file)
        .filter((name) => !mayImport(file.path, name))
        .map((name) => `${file.path} imports ${name}`),
    );
    expect(wrong).toEqual([]);
    expect(product.length).toBeGreaterThan(50);
    expect(product.flatMap((file) => ofProject(file)).length).toBeGreaterThan(200);
  });

  test.each(walls)('of $from do not lead to $to: $why', ({ from, to }) => {
    const inside = product.filter((file) => from.test(file.path));
    expect(inside.length).toBeGreaterThan(1);
    const wrong = inside.flatMap((file) =>
      file.imports.filter((name) => to.test(name)).map((name) => `${file.path} imports ${name}`),
    );
    expect(wrong).toEqual([]);
  });

  test('make no circle of files', () => {
    expect(circlesOf(new Map(product.map((file) => [file.path, new Set(ofProject(file))])))).toEqual([]);
  });

  test('make no circle of folders', () => {
    expect(circlesOf(folderArrows(product))).toEqual([]);
    const arrows = new Map([
      ['a', new Set(['b'])],
      ['b', new Set(['c'])],
      ['c', new Set(['b'])],
    ]);
    expect(circlesOf(arrows)).toEqual(['b', 'c']);
  });

  test('of the console make no circle of folders', () => {
    expect(circlesOf(folderArrows(consoleFiles, 'console/'))).toEqual([]);
    expect(folderArrows(consoleFiles, 'console/').get('console/pages')).toContain('console/ui');
  });

  test('of the product do not lead out of src', () => {
    const wrong = product.flatMap((file) => file.imports.filter((name) => /^(test|scripts|bench|\.\.)\b/.test(name)));
    expect(wrong).toEqual([]);
  });

  test('of the console lead nowhere but to itself and to packages of its own', () => {
    const packages =
      /^(react|react-dom|@tanstack\/react-(query|router|virtual)|codemirror|@codemirror\/[\w-]+|@lezer\/[\w-]+|sql-formatter|uplot)(\/|$)/;
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

  test('leave no export of the product without a use', () => {
    const shipped = [...product, ...consoleFiles].filter((file) => !file.path.endsWith('/generated.ts'));
    const times = new Map<string, number>();
    // Scripts and benchmarks load some by name.
    for (const text of [...all.map((file) => file.text), ...readScripts(['scripts', 'bench'])]) {
      for (const word of text.match(/\w+/g) ?? []) times.set(word, (times.get(word) ?? 0) + 1);
    }
    const exported = /^export (?:async )?(?:function|const|class|interface|type) (\w+)/gm;
    const unused = shipped.flatMap(({ path, code }) =>
      [...code.matchAll(exported)].flatMap(([, name = '']) => (times.get(name) === 1 ? [`${path}: ${name}`] : [])),
    );
    expect(unused).toEqual([]);
    expect(times.get('usualDeadlineMs')).toBeGreaterThan(1);
  });

  test('are seen in every form they have', () => {
    const text = `import a from './a.ts';\nimport {\n  b,\n} from "../b.ts";\nimport 'c';\nexport { d } from './d.ts';
      const e = await ${'import'}('./e.ts');\nimport type { F } from './f.ts';\nimport { type G } from 'node:g';`;
    expect(importsOf('src/x/y.ts', text)).toEqual([
      'src/x/a.ts',
      'src/b.ts',
      'c',
      'src/x/d.ts',
      'src/x/e.ts',
      'src/x/f.ts',
      'node:g',
    ]);
  });
});

describe('sizes', () => {
  test(`files end before line ${fileLinesMax}, except tests and generated ones`, () => {
    const isWritten = (file: SourceFile) => !file.isTest && !file.path.endsWith('/generated.ts');
    const long = all.filter((file) => isWritten(file) && file.text.split('\n').length > fileLinesMax + 1);
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
  {
    words: /^\s*\.\.\.([{].*[}]|\[.*\]),$/,
    why: 'spreading a literal saves lines, not reading: write it out',
  },
  { words: /(:|<|\bas|\||&|,|extends|=)\s*any\b(?!\s*[(:.])/, why: '`any` switches the compiler off', in: inProduct },
  { words: /\bas unknown as\b/, why: 'it switches the compiler off', in: inProduct },
  { words: /^\s*(export )?(const |declare )?enum\s+\w/, why: 'unions of strings do, and erase' },
  { words: /^\s*export default\b/, why: 'names are given once' },
  { words: /\bconsole\./, why: 'there is one logger, and streams that are passed in', in: inProduct },
  {
    words: /\bprocess\.env\b/,
    why: 'config.ts alone reads the environment',
    in: (file) => inProduct(file) && file.path !== 'src/lib/config.ts',
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

  test('texts say it as a native speaker would', () => {
    const stilted = /\b(sh[a]ll|to be h[a]d|for want o[f]|(is|are) let t[o])\b/i;
    const found = linesOf(all, (file) => file.text).filter(({ line }) => stilted.test(line));
    expect(found.map(({ place, line }) => `${place}: ${line.trim()}`)).toEqual([]);
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

/** Tests, what they share, and the contract that every driver is held to. */
const inTests = (file: SourceFile) => file.isTest || /^(test|src\/compute\/contract)\//.test(file.path);

/** Beside `expect` and functions that have it in their name: these throw unless what they are given holds. */
const assertions = /\b(expect\w*|fc\.assert|untilBusyWith|restoreAndKill)\b/;
/** Playwright's own way to say that something must be seen. */
const pageAssertions = /\.(waitFor|waitForURL)\(/;

describe('tests', () => {
  test('assert something, each of them', () => {
    const files = all.filter(inTests);
    const hasAssertion = (file: SourceFile, code: string) =>
      assertions.test(code) || (file.path.startsWith('test/console/') && pageAssertions.test(code));
    const mute = files.flatMap((file) =>
      testBlocksOf(file.code)
        .filter(({ code }) => !hasAssertion(file, code))
        .map(({ line }) => `${file.path}:${line}`),
    );
    expect(mute).toEqual([]);
    expect(files.flatMap((file) => testBlocksOf(file.code)).length).toBeGreaterThan(1_000);
  });

  test('do not sleep: helpers/eventually.ts has a name for each reason to let time pass', () => {
    const files = all.filter((file) => inTests(file) && file.path !== 'test/helpers/eventually.ts');
    const sleeps = /(?<!\.)\b(delay|sleep)\(|\bsetTimeout\(\s*(resolve|done|\w+,)|\bwaitForTimeout\(/;
    const found = linesOf(files, (file) => file.code).filter(({ line }) => sleeps.test(line));
    expect(found.map(({ place, line }) => `${place}: ${line.trim()}`)).toEqual([]);
    const importing = files.filter((file) => file.imports.includes('node:timers/promises'));
    expect(importing.map((file) => file.path)).toEqual([]);
  });

  test('wait for what they expect with the usual patience or with more', () => {
    // These go on without what they wait for.
    const others = ['test/helpers/temp-home.ts', 'test/console/journeys/trouble.ts'];
    const files = all.filter((file) => inTests(file) && !others.includes(file.path));
    const limits = /\b(?:deadlineMs|timeout):\s*(\d[\d_]{3,})/;
    const isShort = (line: string) => Number(limits.exec(line)?.[1]?.replaceAll('_', '') ?? Infinity) < usualDeadlineMs;
    const found = linesOf(files, (file) => file.code).filter(({ line }) => isShort(line));
    expect(found.map(({ place, line }) => `${place}: ${line.trim()}`)).toEqual([]);
    expect(['{ deadlineMs: 20_000 }', '{ timeout: 149_999, x }', '{ timeout: 1 }'].map(isShort)).toEqual([
      true,
      true,
      false,
    ]);
  });

  test('that need no server are told from the others by what they import', () => {
    const unit = findUnitTests(all);
    expect(unit.length).toBeGreaterThan(40);
    expect(unit).toContain('test/tidy.test.ts');
    expect(unit.filter((path) => /^(test\/(e2e|sweeps)|src\/db)\//.test(path))).toEqual([]);
    const file = (path: string, text: string) => ({
      path,
      text,
      code: text,
      prose: text,
      isTest: path.endsWith('.test.ts'),
      imports: importsOf(path, text),
    });
    const files = [
      file('test/a.test.ts', "import { help } from './b.ts';"),
      file('test/b.ts', "import { c } from './c.ts';\nimport './b.ts';"),
      file('test/c.ts', "import { expect, inject } from 'vitest';"),
      file('test/d.test.ts', "import { expect } from 'vitest'; app.inject('/');"),
    ];
    expect(findUnitTests(files)).toEqual(['test/d.test.ts']);
  });

  test('are found in every form they have', () => {
    const text = [
      "test('a', () => f(1));",
      "it.each([[1, (2)]])('b %s', async () => { await g(); });",
      "  test.runIf(isRoot())('c', { timeout: 1 }, () => {",
      '    h(")");',
      '  });',
      "test.core.transaction(() => no()); latest('d', no); suite.test('e', no); // test('f', no)",
    ];
    const found = testBlocksOf(blankOut(text.join('\n')));
    expect(found.map(({ line, code }) => [line, code.replaceAll(/\s+/g, ' ')])).toEqual([
      [1, ' , () => f(1)'],
      [2, ' , async () => { await g(); }'],
      [3, ' , { timeout: 1 }, () => { h( ); }'],
    ]);
  });
});

function readScripts(folders: readonly string[]): string[] {
  return folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.mjs'))
      .map((name) => readFileSync(join(folder, name), 'utf8')),
  );
}

function linesOf(files: readonly SourceFile[], read: (file: SourceFile) => string) {
  return files.flatMap((file) =>
    read(file)
      .split('\n')
      .map((line, at) => ({ place: `${file.path}:${at + 1}`, line })),
  );
}

/** For each folder, the other folders that its files import from. */
function folderArrows(files: readonly SourceFile[], part = 'src/'): Map<string, Set<string>> {
  const arrows = new Map<string, Set<string>>();
  for (const file of files) {
    const from = dirname(file.path);
    const targets = arrows.get(from) ?? new Set();
    for (const to of ofProject(file, part).map((name) => dirname(name))) if (to !== from) targets.add(to);
    arrows.set(from, targets);
  }
  return arrows;
}

/** The folders that can be reached from themselves. */
function circlesOf(arrows: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  return [...arrows.keys()].filter((start) => {
    const seen = new Set<string>();
    const queue = [...(arrows.get(start) ?? [])];
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      if (seen.has(next)) continue;
      seen.add(next);
      queue.push(...(arrows.get(next) ?? []));
    }
    return seen.has(start);
  });
}
