/**
 * Makes a release from a clean checkout: `npm run release`, in the folder of the checkout. docs/releases.md says how. It
 * writes a folder with the package, a bill of materials, licenses, changes and checksums, and publishes nothing.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { changesIn, releasePending } from './changelog.mjs';
import { renderSbom } from './render-sbom.mjs';
import { describePackages, installedFolders, licenseTexts, readLock } from './third-party.mjs';

const root = process.cwd();
const read = (name) => readFileSync(join(root, name), 'utf8');
const write = (name, text) => writeFileSync(join(root, name), text);

const options = {
  set: { type: 'string' },
  tag: { type: 'boolean', default: false },
  to: { type: 'string', default: 'releases' },
};

try {
  const { set, tag, to } = parseArgs({ options }).values;
  requireCleanTree();
  if (set !== undefined) setVersion(set);
  const { version } = JSON.parse(read('package.json'));
  const changes = changesIn(read('CHANGELOG.md'), version);
  if (changes === undefined) {
    throw new Error(`CHANGELOG.md has no section for ${version}: --set ${version} makes one of what is pending`);
  }
  if (tag) requireTagIsFree(version);
  const folder = resolve(root, to, version);
  makeFiles(folder, version, changes);
  requireCleanTree();
  if (tag)
    git('tag', '--annotate', '--cleanup=verbatim', '--message', `Catnap ${version}\n\n${changes}`, tagOf(version));
  console.log(`${folder}\n\n${readFileSync(join(folder, 'SHA256SUMS'), 'utf8')}`);
  console.log(tag ? `Tagged ${tagOf(version)}; nothing was pushed.` : `Not tagged: --tag makes ${tagOf(version)}.`);
} catch (error) {
  console.error(`release: ${error.message}`);
  process.exitCode = 1;
}

function requireCleanTree() {
  const changed = git('status', '--porcelain');
  if (changed !== '') throw new Error(`the checkout has changes that are not committed:\n${changed}`);
}

/** Version and changelog are one commit, and the package is built from it. */
function setVersion(version) {
  const manifest = JSON.parse(read('package.json'));
  if (!/^\d+\.\d+\.\d+$/.test(version)) throw new Error(`--set ${version} is not a version such as 1.2.3`);
  if (compareVersions(version, manifest.version) < 0)
    throw new Error(`--set ${version} is older than ${manifest.version}`);
  requireTagIsFree(version);
  const date = new Date().toISOString().slice(0, 10);
  write('CHANGELOG.md', releasePending(read('CHANGELOG.md'), version, date));
  write('package.json', toJson({ ...manifest, version }));
  const lock = JSON.parse(read('package-lock.json'));
  lock.version = version;
  lock.packages[''].version = version;
  write('package-lock.json', toJson(lock));
  git('add', 'CHANGELOG.md', 'package.json', 'package-lock.json');
  git('commit', '--quiet', '--message', `Release ${version}`);
}

function requireTagIsFree(version) {
  if (git('tag', '--list', tagOf(version)) !== '') throw new Error(`there is a tag ${tagOf(version)} already`);
}

/** Made beside its place, so that a folder of a release is always whole. */
function makeFiles(folder, version, changes) {
  run('npm', ['run', '--silent', 'build']);
  const origin = JSON.parse(read('dist/origin.json'));
  const commit = git('rev-parse', '--short=12', 'HEAD');
  if (origin.commit !== commit) throw new Error(`the build is of ${origin.commit}, and the checkout is at ${commit}`);
  mkdirSync(dirname(folder), { recursive: true });
  const making = mkdtempSync(`${folder}.`);
  try {
    // It is built: the script that npm would run first builds once more.
    const packed = run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', making]);
    const [{ filename }] = JSON.parse(packed);
    requireRightVersion(join(making, filename), `${version} (${commit})`);
    const base = `catnap-${version}`;
    const files = {
      [filename]: readFileSync(join(making, filename)),
      [`${base}.cdx.json`]: billOfMaterials(join(making, filename), origin.packages),
      [`${base}-licenses.txt`]: allLicenses(),
      [`${base}-changes.md`]: `${changes}\n`,
    };
    const names = Object.keys(files).sort();
    for (const name of names) writeFileSync(join(making, name), files[name]);
    const sums = names.map((name) => `${sha256(readFileSync(join(making, name)))}  ${name}\n`);
    writeFileSync(join(making, 'SHA256SUMS'), sums.join(''));
    rmSync(folder, { recursive: true, force: true });
    renameSync(making, folder);
  } finally {
    rmSync(making, { recursive: true, force: true });
  }
}

/** The packed program, asked. It needs nothing of what npm installs beside it to say so. */
function requireRightVersion(tarball, wanted) {
  const folder = mkdtempSync(join(dirname(tarball), 'try-'));
  try {
    run('tar', ['-xzf', tarball, '-C', folder]);
    const said = run(process.execPath, [join(folder, 'package/bin/catnap.mjs'), '--version']).trim();
    if (said !== wanted) throw new Error(`the package says that it is ${said}, and should say ${wanted}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function billOfMaterials(tarball, packages) {
  const lock = readLock(root);
  const bundled = packages.map((one) => ({ ...one, folder: folderOf(one, lock) }));
  return renderSbom({
    manifest: JSON.parse(read('package.json')),
    lock,
    bundled,
    installed: describePackages(installedFolders(lock), lock),
    sha256: sha256(readFileSync(tarball)),
    at: new Date(git('show', '--no-patch', '--format=%cI', 'HEAD')).toISOString(),
  });
}

function folderOf({ name, version }, lock) {
  const found = Object.entries(lock).find(
    ([folder, entry]) => entry.version === version && (entry.name ?? folder.replace(/^.*node_modules\//, '')) === name,
  );
  if (found === undefined) throw new Error(`package-lock.json has no ${name} ${version}, which the build has used`);
  return found[0];
}

/** Catnap's own, those of what is in the package, and of what npm has installed here beside it. */
function allLicenses() {
  const lock = readLock(root);
  const here = installedFolders(lock).filter((folder) => existsSync(join(root, folder)));
  const beside = licenseTexts(describePackages(here, lock), root);
  const line = `${'='.repeat(80)}\n`;
  return [
    `Catnap\n\n${read('LICENSE')}`,
    `In the package\n\n${read('dist/third-party-licenses.txt')}`,
    `Installed beside it\n\n${beside}`,
  ].join(`\n${line}\n`);
}

function tagOf(version) {
  return `v${version}`;
}

function compareVersions(one, other) {
  return one.localeCompare(other, 'en', { numeric: true });
}

function sha256(content) {
  return createHash('sha256').update(content).digest('hex');
}

function toJson(value) {
  return `${JSON.stringify(value, null, 2)}\n`;
}

function git(...words) {
  return run('git', words).trim();
}

function run(command, words) {
  const { status, stdout, error } = spawnSync(command, words, {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 2 ** 28,
  });
  if (status !== 0) throw new Error(`${command} ${words.join(' ')} ended with ${status ?? error?.message}`);
  return stdout;
}
