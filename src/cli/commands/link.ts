/** `catnap link`, `unlink` and `open`: a folder's project, and the way from there to the console. */
import { spawn } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from 'commander';
import { CliFailure } from '../kit/failure.ts';
import type { ConsoleLink } from '../kit/generated.ts';
import { linkName } from '../kit/link.ts';
import { onBranch } from '../kit/options.ts';
import type { RunCommand, Session } from '../kit/session.ts';
import { branchOf, findBranch, findProject, type OnBranch } from '../kit/targets.ts';

interface LinkOptions {
  readonly branch?: string;
  readonly database?: string;
  readonly role?: string;
}

export function addLink(program: Command, run: RunCommand): void {
  program
    .command('link')
    .description('tie this folder to a project, so that commands below it need no ids')
    .argument('[project]', 'id or name (default: the only one)')
    .option('--branch <branch>', 'and to this branch (default: the default branch, whichever that is)')
    .option('--database <name>', 'and to this database')
    .option('--role <name>', 'and to this role')
    .action((project: string | undefined, options: LinkOptions) => run((session) => link(session, project, options)));
  program
    .command('unlink')
    .description('take the link of this folder away')
    .action(() => run(unlink));
}

async function link(session: Session, given: string | undefined, options: LinkOptions): Promise<undefined> {
  // What the folder is linked to so far is what is about to change.
  const anew = { client: session.client, link: null };
  const project = await findProject(anew, given === undefined ? {} : { project: given });
  const branch = options.branch === undefined ? undefined : (await branchOf(anew, project, options.branch)).branch.id;
  const { database, role } = options;
  const content = { project: project.id, branch, database, role };
  const file = join(session.parts.folder, linkName);
  await writeFile(file, `${JSON.stringify(content, null, 2)}\n`);
  const titles = { file: 'file', project: 'project', branch: 'branch', database: 'database', role: 'role' };
  session.writer.record({ file, ...content }, titles);
}

async function unlink(session: Session): Promise<undefined> {
  const { link: found, parts, writer } = session;
  if (found === null) throw new CliFailure(`neither ${parts.folder} nor a folder above it is linked`);
  await rm(found.file);
  writer.record(found, { file: 'removed', project: 'project' });
}

export function addOpen(program: Command, run: RunCommand): void {
  onBranch(
    program.command('open').description('open the console in a browser, signed in, at the linked or named project'),
  )
    .option('--print', 'print the link only')
    .action((options: OnBranch & { readonly print?: boolean }) => run((session) => open(session, options)));
}

async function open(session: Session, options: OnBranch & { readonly print?: boolean }): Promise<undefined> {
  const page = await pageOf(session, options);
  const { link } = await session.client.postBeside<ConsoleLink>('/console/link');
  // After the #, so that no log and no proxy sees it.
  const url = `${session.client.url}${page}#open=${link}`;
  session.writer.record({ url }, { url: 'console' });
  session.writer.remark('The link signs in once, within the hour, as the owner of the key.');
  if (options.print || session.format === 'json') return;
  await openBrowser(url).catch(() => session.writer.remark('No browser could be started here.'));
}

async function pageOf(session: Session, options: OnBranch): Promise<string> {
  const isNamed = [options.project, options.projectId, options.branch, session.link].some((one) => one != null);
  if (!isNamed) return '/';
  if (options.branch === undefined) return `${(await findProject(session, options)).path}`;
  return (await findBranch(session, options)).path;
}

/** Whatever the desktop has; a machine without one has none of these programs. */
function openBrowser(url: string): Promise<void> {
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open';
  return new Promise((resolve, reject) => {
    const child = spawn(program, [url], { stdio: 'ignore', detached: true });
    child.once('error', reject);
    child.once('spawn', () => {
      child.unref();
      resolve();
    });
  });
}
