/** `catnap git`: each git branch gets a database branch of its own name, made when it is checked out. */
import { execFile } from 'node:child_process';
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Command } from 'commander';
import { CliFailure } from '../kit/failure.ts';
import type { CreateProjectBranchReply, DeleteProjectBranchReply, ListProjectBranchesReply } from '../kit/generated.ts';
import { detachedName, gitLink, linkName } from '../kit/link.ts';
import { untilDone, waitFor } from '../kit/operations.ts';
import type { RunCommand, Session } from '../kit/session.ts';
import { findProject } from '../kit/targets.ts';

const hookName = 'post-checkout';
const mark = '# catnap git';

/**
 * A checkout never fails because of it. The third word is 1 when a branch was checked out, and 0 for single files.
 * `command` is the program that wrote it, for folders where there is no `catnap` on the path.
 */
const hook = (command: readonly [string, string]) => {
  const [node, entry] = command.map(quoted);
  return `#!/bin/sh
${mark}: gives the branch that was checked out a database branch. \`catnap git uninstall\` removes this file.
[ "$3" = 1 ] || exit 0
if command -v catnap >/dev/null 2>&1; then catnap git sync
elif [ -e ${node} ] && [ -e ${entry} ]; then ${node} ${entry} git sync
else echo 'catnap: the program is not where it was: run "catnap git install" again' >&2
fi
exit 0
`;
};

const quoted = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`;

/** In the label of a branch that this made: `prune` leaves all others alone. */
const label = 'git_branch';

export function addGit(program: Command, run: RunCommand): void {
  const git = program.command('git').description('give each git branch a database branch: install, sync, prune');
  git
    .command('install')
    .description('write a hook that makes the database branch at each checkout, and link the folder to it')
    .option('--main <name>', 'the git branch that belongs to the default database branch (default: main or master)')
    .action((options: { readonly main?: string }) => run((session) => install(session, options.main)));
  git
    .command('uninstall')
    .description('remove the hook; database branches stay')
    .action(() => run(uninstall));
  git
    .command('sync')
    .description('make the database branch of the git branch that is checked out, unless it is there')
    .action(() => run(sync));
  git
    .command('prune')
    .description('delete database branches that `git sync` has made and whose git branch is gone')
    .action(() => run(prune));
}

async function install(session: Session, main: string | undefined): Promise<undefined> {
  const { parts, link, writer } = session;
  if (link === null) throw new CliFailure('this folder is not linked to a project: run `catnap link` first');
  const file = await hookFile(parts.folder);
  const present = await readFile(file, 'utf8').catch(() => '');
  if (present !== '' && !present.includes(mark)) {
    throw new CliFailure(
      `${file} is there already and is not Catnap’s: add the line \`catnap git sync\` to it yourself`,
    );
  }
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, hook(parts.command));
  await chmod(file, 0o755);
  const content: unknown = JSON.parse(await readFile(link.file, 'utf8'));
  const branch = gitLink(main);
  await writeFile(link.file, `${JSON.stringify({ ...(content as object), branch }, null, 2)}\n`);
  writer.record({ hook: file, link: link.file, branch }, { hook: 'hook', link: 'link', branch: 'branch' });
}

async function uninstall({ parts, writer }: Session): Promise<undefined> {
  const file = await hookFile(parts.folder);
  const present = await readFile(file, 'utf8').catch(() => '');
  if (!present.includes(mark)) throw new CliFailure(`there is no hook of Catnap’s in ${dirname(file)}`);
  await rm(file);
  writer.record({ file }, { file: 'removed' });
  writer.remark(`The link in ${linkName} still follows the git branch; \`catnap link\` changes it.`);
}

async function sync(session: Session): Promise<undefined> {
  const { client, link, writer } = session;
  if (link?.followsGit !== true)
    throw new CliFailure('this folder does not follow git: run `catnap git install` first');
  const { branch: name } = link;
  if (name === undefined || name === detachedName) {
    const why =
      name === undefined ? 'This git branch belongs to the default database branch' : 'No branch is checked out';
    writer.remark(`${why}: there is nothing to do.`);
    return;
  }
  const project = await findProject(session, {});
  const search = { search: name };
  const { branches } = await client.get<ListProjectBranchesReply>(`${project.path}/branches`, search);
  const found = branches.find((branch) => branch.name === name);
  if (found !== undefined) {
    writer.record(found, { id: 'found', name: 'name' });
    return;
  }
  const made = await client.post<CreateProjectBranchReply>(`${project.path}/branches`, {
    branch: { name },
    endpoints: [{ type: 'read_write' }],
    annotation_value: { [label]: name },
  });
  await waitFor(session, made.operations);
  writer.record(made.branch, { id: 'made', name: 'name' });
}

async function prune(session: Session): Promise<undefined> {
  const { client, parts, writer } = session;
  const project = await findProject(session, {});
  const { branches, annotations } = await client.get<ListProjectBranchesReply>(`${project.path}/branches`);
  const format = ['--format=%(refname)', 'refs/heads', 'refs/remotes'];
  const refs = (await git(parts.folder, 'for-each-ref', ...format)).split('\n');
  const living = new Set(refs.map((ref) => ref.replace(/^refs\/(heads|remotes\/[^/]+)\//, '')));
  const gone = branches.filter(({ id, ...branch }) => {
    const name = annotations[id]?.value?.[label];
    return name !== undefined && !living.has(name) && !branch.default && !branch.protected;
  });
  for (const { id } of gone) {
    const { operations } = await client.delete<Partial<DeleteProjectBranchReply>>(`${project.path}/branches/${id}`);
    await untilDone(client, operations ?? []);
  }
  writer.list(gone, { id: 'deleted', name: 'name' }, 'There is nothing to delete.');
}

async function hookFile(folder: string): Promise<string> {
  return resolve(folder, (await git(folder, 'rev-parse', '--git-path', join('hooks', hookName))).trim());
}

async function git(folder: string, ...words: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('git', ['-C', folder, ...words]).catch(
    (error: NodeJS.ErrnoException) => {
      const problem = error.code === 'ENOENT' ? 'git is not installed' : `${folder} is not in a git repository`;
      throw new CliFailure(problem);
    },
  );
  return stdout;
}
