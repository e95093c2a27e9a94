/**
 * What of other people's work is in a build, and under which licenses. The bundlers report the modules that they put
 * in; names, versions and licenses are those of the lock file, the texts those of the packages themselves.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Folders of packages, as the lock file names them, that these modules are from. */
export function packageFoldersOf(moduleIds) {
  const folders = moduleIds.flatMap((id) => {
    const [path] = id.replace(/^\0+/, '').split('?');
    const start = path.indexOf('node_modules/');
    const [folder] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(start === -1 ? '' : path.slice(start)) ?? [];
    return folder === undefined ? [] : [folder];
  });
  return [...new Set(folders)].sort();
}

export function readLock(folder = root) {
  return JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')).packages;
}

export function describePackages(folders, lock) {
  const found = folders.map((folder) => {
    const { name = folder.replace(/^.*node_modules\//, ''), version, license } = lock[folder];
    if (license === undefined) throw new Error(`${folder} does not say what its license is`);
    return { folder, name, version, license };
  });
  return found.sort((one, other) => compare(one.name, other.name) || compare(one.version, other.version));
}

/** What npm installs beside the package: its dependencies, and theirs, as far as they are for a machine it runs on. */
export function installedFolders(lock) {
  const found = new Set();
  const queue = Object.keys(lock[''].dependencies).map((name) => ['', name]);
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const folder = locate(lock, ...next);
    if (folder === undefined || found.has(folder) || !isForUs(lock[folder])) continue;
    found.add(folder);
    const { dependencies = {}, optionalDependencies = {} } = lock[folder];
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) queue.push([folder, name]);
  }
  return [...found].sort();
}

/** As Node does: beside the package that asks, then in each folder above it. */
export function locate(lock, asking, name) {
  const places = asking.split('/node_modules/');
  for (let depth = places.length; depth >= 0; depth -= 1) {
    const above = asking === '' ? '' : places.slice(0, depth).join('/node_modules/');
    const folder = above === '' ? `node_modules/${name}` : `${above}/node_modules/${name}`;
    if (lock[folder] !== undefined) return folder;
  }
  return undefined;
}

function isForUs({ os = ['linux'], cpu = ['x64'], libc = ['glibc'] }) {
  return os.includes('linux') && libc.includes('glibc') && (cpu.includes('x64') || cpu.includes('arm64'));
}

/** Most licenses ask that their text goes along with every copy. */
export function licenseTexts(packages, place = root) {
  const sections = packages.map(({ folder, name, version, license }) => {
    const texts = readdirSync(join(place, folder))
      .filter((file) => /^(licen[cs]e|copying|notice)/i.test(file))
      .sort()
      .map((file) => readFileSync(join(place, folder, file), 'utf8').trim());
    return [`${name} ${version} (${license})`, ...texts].join('\n\n');
  });
  return `${sections.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}

function compare(one, other) {
  return one < other ? -1 : Number(one > other);
}
