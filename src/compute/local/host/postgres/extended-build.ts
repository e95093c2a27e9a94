/**
 * A build with extensions of the machine: a directory beside the embedded build, with hard links to its files and
 * copies of the extensions' own. Postgres 17 looks for extensions in its own directory only, and control files have to
 * be changed on every major, since those of packages trust nobody; so both majors get them in the same way.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import {
  chmod,
  copyFile,
  link,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Config } from '../../../../lib/config.ts';
import type { ExtensionFact, ExtensionFacts } from '../../../../lib/model.ts';
import type { ExtensionSettings } from '../../../../lib/postgres-settings.ts';
import { renameDurably, syncTree } from '../copy/tree.ts';
import { type Layout, unfinishedPrefix } from '../home/layout.ts';
import { type Build, ensureBuild, locateEmbedded } from './builds.ts';
import { judgeExtensions, type Verdict } from './extension-verdicts.ts';
import { trusted } from './extensions.ts';
import { givenExtensions } from './given-extensions.ts';
import { extensionFoldersOf, type FoundExtension, findExtensions, foldersInTree } from './machine-extensions.ts';

export interface ExtendedBuild {
  readonly build: Build;
  readonly listExtensions: () => Promise<ExtensionFacts>;
}

const origin = 'Catnap';

/** Whether anything could change an embedded build: what the machine has, or had. */
export async function mayBeExtended(major: number, settings: ExtensionSettings, layout: Layout): Promise<boolean> {
  if (settings.allowed.length > 0) return true;
  const known = await rememberedNames(noteFileOf(major, layout));
  return known.length > 0 || (await findExtensions(extensionFoldersOf(major, settings))).length > 0;
}

/** The build that tenants' servers start from, and what it offers. */
export async function ensureServerBuild(
  major: number,
  config: Pick<Config, 'pgBin' | 'extensions'>,
  layout: Layout,
  progress: (line: string) => void = () => undefined,
): Promise<ExtendedBuild> {
  const build = await ensureBuild(major, config, layout, progress);
  if (build.base === null) return { build, listExtensions: () => givenExtensions(build) };
  return extendBuild(build, config.extensions, layout, progress);
}

/** `base` itself where the machine has nothing for it. */
export async function extendBuild(
  base: Build,
  settings: ExtensionSettings,
  layout: Layout,
  progress: (line: string) => void = () => undefined,
): Promise<ExtendedBuild> {
  // Most machines have nothing: then a start reads no control file, and what is installed later is not listed.
  if (!(await mayBeExtended(base.major, settings, layout))) {
    const nowhere = { roots: { [base.major]: [] }, allowed: [] };
    return { build: base, listExtensions: async () => factsOf(await judge(base, nowhere, [])) };
  }
  const known = await rememberedNames(noteFileOf(base.major, layout));
  const judged = await judge(base, settings, known);
  await rememberNames(noteFileOf(base.major, layout), known, judged.verdicts);
  for (const { name, reason, isWanted } of judged.verdicts) {
    if (isWanted && reason !== null) progress(`extension ${name} of Postgres ${base.major} is not offered: ${reason}`);
  }
  const build = await installVerdicts(base, judged.verdicts, layout);
  return { build, listExtensions: async () => factsOf(judged) };
}

interface Judged {
  /** What the embedded build offers by itself. */
  readonly own: readonly FoundExtension[];
  readonly verdicts: readonly Verdict[];
  /** Where the embedded Postgres has its scripts; nobody's business but this machine's. */
  readonly embedded: string;
}

/** Also what the embedded Postgres has and Catnap's copy of it does not. */
async function judge(base: Build, settings: ExtensionSettings, known: readonly string[]): Promise<Judged> {
  const own = await findExtensions([foldersInTree(dirname(base.bin))]);
  const ownNames = own.map(({ name }) => name);
  const embedded = foldersInTree(locateEmbedded(base.major));
  const searched = [...extensionFoldersOf(base.major, settings), embedded];
  const found = (await findExtensions(searched)).filter(({ name }) => !ownNames.includes(name));
  const program = join(base.bin, 'postgres');
  const verdicts = await judgeExtensions(found, { program, ownNames, allowed: settings.allowed, known });
  return { own, verdicts, embedded: embedded.scripts };
}

function factsOf({ own, verdicts, embedded }: Judged): ExtensionFacts {
  const factOf = ({ name, found, reason }: Verdict): ExtensionFact => {
    const from = found?.folders.scripts ?? 'the machine';
    const { version = null, comment = '' } = found ?? {};
    return { name, version, comment, origin: from === embedded ? origin : from, isOffered: reason === null, reason };
  };
  const offered = own.map(({ name, version, comment }) => ({ name, version, comment, origin, isOffered: true }));
  const extensions: ExtensionFact[] = [...offered.map((one) => ({ ...one, reason: null })), ...verdicts.map(factOf)];
  return { extensions: extensions.sort((one, other) => (one.name < other.name ? -1 : 1)), note: null };
}

async function installVerdicts(base: Build, verdicts: readonly Verdict[], layout: Layout): Promise<Build> {
  const wanted = verdicts.filter(({ isWanted }) => isWanted);
  if (wanted.length === 0) return base;
  const identities = await Promise.all(wanted.map(identityOf));
  const digest = createHash('sha256').update(JSON.stringify(identities)).digest('hex').slice(0, 10);
  const name = `${base.name}-x${digest}`;
  const target = layout.build(base.major, name);
  const build = { ...base, name, bin: join(target, 'bin') };
  if (existsSync(target)) return build;
  const making = await mkdtemp(join(dirname(target), unfinishedPrefix));
  const tree = join(making, 'build');
  try {
    await linkTree(dirname(base.bin), tree);
    for (const verdict of wanted) await addExtension(verdict, tree);
    await syncTree(tree);
    await renameDurably(tree, target);
  } catch (error) {
    // Another process was faster; its build is the same.
    if (!existsSync(target)) throw error;
  } finally {
    await rm(making, { recursive: true, force: true });
  }
  return build;
}

/** Changes whenever a file of the extension does, and with the verdict. */
async function identityOf({ name, found, reason }: Verdict): Promise<unknown> {
  if (found === null || reason !== null) return [name, reason];
  const paths = filesOf(found).map(({ from }) => from);
  const stats = await Promise.all(paths.map((path) => stat(path)));
  return [name, found.control, stats.map(({ size, mtimeMs }, index) => [paths[index], size, mtimeMs])];
}

function filesOf({ folders, scripts, libraries }: NonNullable<Verdict['found']>) {
  return [
    ...scripts.map((file) => ({ from: join(folders.scripts, file), kind: 'scripts' as const, file })),
    ...libraries.map((file) => ({ from: join(folders.libraries, file), kind: 'libraries' as const, file })),
  ];
}

async function addExtension(verdict: Verdict, tree: string): Promise<void> {
  const { name, found, reason } = verdict;
  const to = foldersInTree(tree);
  if (found === null || reason !== null) return writePlaceholder(name, reason ?? '', to.scripts);
  for (const { from, kind, file } of filesOf(found)) {
    const path = join(to[kind], file);
    await copyFile(from, path);
    await chmod(path, kind === 'libraries' ? 0o755 : 0o644);
  }
  // One that needs no superuser runs as its creator, which is less than trust would give it.
  const control = found.needsNoSuperuser ? found.control : trusted(found.control);
  await writeFile(join(to.scripts, `${name}.control`), control, { mode: 0o644 });
}

/** So that CREATE EXTENSION answers with the reason, where Postgres would only say that there is no such file. */
async function writePlaceholder(name: string, reason: string, folder: string): Promise<void> {
  const sentence = `extension "${name}" is not available: ${reason}`;
  // In ASCII, which every encoding of a database has.
  const quoted = `'${sentence.replaceAll("'", "''").replaceAll(/[^ -~]|\\/g, '?')}'`;
  const control = `comment = ${quoted}\ndefault_version = 'unavailable'\nrelocatable = true\nsuperuser = false\n`;
  await writeFile(join(folder, `${name}.control`), control, { mode: 0o644 });
  const raise = `DO $catnap$ BEGIN RAISE EXCEPTION USING ERRCODE = 'feature_not_supported', MESSAGE = ${quoted}; END $catnap$;`;
  await writeFile(join(folder, `${name}--unavailable.sql`), `${raise}\n`, { mode: 0o644 });
}

/** Takes no room and no time; a file that is never changed can be in two trees. */
async function linkTree(source: string, target: string): Promise<void> {
  await mkdir(target);
  await chmod(target, 0o755); // whatever the umask is: servers under other uids pass through
  for (const entry of await readdir(source, { withFileTypes: true })) {
    const [from, to] = [join(source, entry.name), join(target, entry.name)];
    if (entry.isDirectory()) await linkTree(from, to);
    else if (entry.isSymbolicLink()) await symlink(await readlink(from), to);
    else await link(from, to).catch(() => copyFile(from, to));
  }
}

const noteFileOf = (major: number, layout: Layout) => join(layout.builds, `${major}.extensions.json`);

/** What was once offered here: databases may have it, so it is missed when its package has gone. */
async function rememberedNames(path: string): Promise<string[]> {
  const text = await readFile(path, 'utf8').catch(() => '[]');
  const names: unknown = JSON.parse(text);
  return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : [];
}

async function rememberNames(path: string, known: readonly string[], verdicts: readonly Verdict[]): Promise<void> {
  const offered = verdicts.filter(({ reason }) => reason === null).map(({ name }) => name);
  const all = [...new Set([...known, ...offered])].sort();
  if (all.length === known.length) return;
  const fresh = `${path}.${process.pid}`;
  await writeFile(fresh, JSON.stringify(all));
  await rename(fresh, path);
}
