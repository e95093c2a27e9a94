/** `catnap branches`: lists, makes, renames and deletes branches, and says which one is the default. */
import { type Command, InvalidArgumentError } from 'commander';
import type {
  CreateProjectBranchReply,
  DeleteProjectBranchReply,
  GetProjectBranchReply,
  ListProjectBranchesReply,
  SetDefaultProjectBranchReply,
  UpdateProjectBranchReply,
} from '../kit/generated.ts';
import { waitFor } from '../kit/operations.ts';
import {
  computeSize,
  inProject,
  momentOf,
  type Named,
  onBranch,
  type Waiting,
  withName,
  withWait,
} from '../kit/options.ts';
import type { RunCommand, Session } from '../kit/session.ts';
import { branchOf, findBranch, findProject, type InProject, type OnBranch } from '../kit/targets.ts';
import { addBranchContent } from './branch-content.ts';
import { addComputeOfBranch } from './computes.ts';

interface CreateOptions extends InProject, Named, Waiting {
  readonly parent?: string;
  readonly at?: string;
  readonly schemaOnly?: boolean;
  readonly compute: boolean;
  readonly size?: { readonly min: number; readonly max: number };
  readonly expiresAt?: string;
  readonly protected?: boolean;
}

const branchArgument = ['<branch>', 'id or name of the branch'] as const;
const columns = {
  id: 'id',
  name: 'name',
  default: 'default',
  current_state: 'state',
  parent_id: 'parent',
  logical_size: 'bytes',
  created_at: 'created at',
  expires_at: 'expires at',
};

export function addBranches(program: Command, run: RunCommand): void {
  const branches = program.command('branches').alias('branch').description('branches: list, create, restore, compare');
  inProject(branches.command('list').description('list the branches of a project')).action((options: InProject) =>
    run((session) => list(session, options)),
  );
  onBranch(branches.command('get').description('show a branch'))
    .argument('[branch]', 'id or name (default: that of the folder’s link, or the default branch)')
    .action((branch: string | undefined, options: OnBranch) =>
      run((session) => show(session, { ...options, ...(branch !== undefined && { branch }) })),
    );
  addCreate(branches, run);
  withWait(inProject(branches.command('rename').description('give a branch another name')))
    .argument(...branchArgument)
    .argument('<name>', 'the new name')
    .action((branch: string, name: string, options: InProject & Waiting) =>
      run((session) => change(session, { ...options, branch }, { name })),
    );
  inProject(branches.command('set-expiration').description('say when a branch is deleted by itself'))
    .argument(...branchArgument)
    .argument('<time>', 'a time, at most 30 days ahead, or `never`', parseExpiry)
    .action((branch: string, { at }: { readonly at: string | null }, options: InProject) =>
      run((session) => change(session, { ...options, branch }, { expires_at: at })),
    );
  withWait(inProject(branches.command('set-default').description('make a branch the default one')))
    .argument(...branchArgument)
    .action((branch: string, options: InProject & Waiting) =>
      run((session) => setDefault(session, { ...options, branch }, options)),
    );
  withWait(inProject(branches.command('delete').description('delete a branch; `catnap recover` brings it back')))
    .argument(...branchArgument)
    .action((branch: string, options: InProject & Waiting) =>
      run((session) => remove(session, { ...options, branch }, options)),
    );
  addComputeOfBranch(branches, run);
  addBranchContent(branches, run);
}

function addCreate(branches: Command, run: RunCommand): void {
  const create = branches.command('create').description('make a branch, with a compute of its own');
  withWait(inProject(withName(create, 'branch')))
    .option('--parent <branch>', 'id or name of the branch that it is made from (default: the default branch)')
    .option('--at <moment>', 'a time (2026-01-31T12:00:00Z) or an LSN (0/1DE2850) in the history of the parent')
    .option('--schema-only', 'copy the schema, and no rows')
    .option('--no-compute', 'make no compute with it')
    .option('--size <units>', 'size of its compute, such as 1 or 0.25-2', computeSize)
    .option('--expires-at <time>', 'when it is deleted by itself (default: never)')
    .option('--protected', 'make it a protected branch')
    .action((name: string | undefined, options: CreateOptions) =>
      run((session) => createBranch(session, { ...options, ...(name !== undefined && { name }) })),
    );
}

async function list(session: Session, options: InProject): Promise<undefined> {
  const { path } = await findProject(session, options);
  const { branches } = await session.client.get<ListProjectBranchesReply>(`${path}/branches`);
  session.writer.list(branches, columns, 'There are no branches.');
}

async function show(session: Session, options: OnBranch): Promise<undefined> {
  const { path } = await findBranch(session, options);
  const { branch } = await session.client.get<GetProjectBranchReply>(path);
  session.writer.record(branch, columns);
}

async function createBranch(session: Session, options: CreateOptions): Promise<undefined> {
  const project = await findProject(session, options);
  const parent = options.parent === undefined ? undefined : await branchOf(session, project, options.parent);
  const { lsn, timestamp } = momentOf(options.at);
  const size = options.size && {
    autoscaling_limit_min_cu: options.size.min,
    autoscaling_limit_max_cu: options.size.max,
  };
  const made = await session.client.post<CreateProjectBranchReply>(`${project.path}/branches`, {
    branch: {
      name: options.name,
      parent_id: parent?.branch.id,
      parent_lsn: lsn,
      parent_timestamp: timestamp,
      expires_at: options.expiresAt,
      protected: options.protected,
      ...(options.schemaOnly && { init_source: 'schema-only' }),
    },
    ...(options.compute && { endpoints: [{ type: 'read_write', ...size }] }),
  });
  if (options.wait) await waitFor(session, made.operations);
  if (session.format === 'json') {
    session.writer.record(made, {});
    return;
  }
  const row = { ...made.branch, compute: made.endpoints[0]?.id, uri: made.connection_uris?.[0]?.connection_uri };
  session.writer.record(row, { id: 'branch', name: 'name', compute: 'compute', uri: 'connection string' });
}

async function change(session: Session, where: OnBranch & Partial<Waiting>, branch: object): Promise<undefined> {
  const { path } = await findBranch(session, where);
  const changed = await session.client.patch<UpdateProjectBranchReply>(path, { branch });
  if (where.wait !== false) await waitFor(session, changed.operations);
  session.writer.record(changed.branch, columns);
}

async function setDefault(session: Session, where: OnBranch, { wait }: Waiting): Promise<undefined> {
  const { path } = await findBranch(session, where);
  const changed = await session.client.post<SetDefaultProjectBranchReply>(`${path}/set_as_default`, {});
  if (wait) await waitFor(session, changed.operations);
  session.writer.record(changed.branch, columns);
}

async function remove(session: Session, where: OnBranch, { wait }: Waiting): Promise<undefined> {
  const { path, branch } = await findBranch(session, where);
  const { operations } = await session.client.delete<Partial<DeleteProjectBranchReply>>(path);
  if (wait) await waitFor(session, operations ?? []);
  session.writer.record(branch, { id: 'deleted', name: 'name' });
}

function parseExpiry(text: string): { readonly at: string | null } {
  if (text === 'never') return { at: null };
  if (Number.isNaN(Date.parse(text)))
    throw new InvalidArgumentError('Allowed: a time such as 2026-01-31T12:00:00Z, or never.');
  return { at: text };
}
