/** `catnap projects`: lists, makes, renames and deletes projects. */
import type { Command } from 'commander';
import type {
  CreateProjectReply,
  DeleteProjectReply,
  GetProjectReply,
  ProjectListItem,
  UpdateProjectReply,
} from '../kit/generated.ts';
import { waitFor } from '../kit/operations.ts';
import { computeSize, type Named, type Waiting, wholeNumber, withName, withWait } from '../kit/options.ts';
import type { RunCommand, Session } from '../kit/session.ts';
import { findProject } from '../kit/targets.ts';

interface CreateOptions extends Named, Waiting {
  readonly pgVersion?: number;
  readonly size?: { readonly min: number; readonly max: number };
  readonly org?: string;
}

const projectArgument = ['[project]', 'id or name (default: that of the folder’s link, or the only one)'] as const;
const columns = { id: 'id', name: 'name', pg_version: 'Postgres', org_id: 'organization', created_at: 'created at' };

export function addProjects(program: Command, run: RunCommand): void {
  const projects = program.command('projects').alias('project').description('projects: list, get, create, delete');
  projects
    .command('list')
    .description('list the projects that the key reaches')
    .action(() => run(list));
  projects
    .command('get')
    .description('show a project')
    .argument(...projectArgument)
    .action((project: string | undefined) => run((session) => show(session, project)));
  withWait(withName(projects.command('create').description('make a project, with a branch and a compute'), 'project'))
    .option('--pg-version <major>', 'major version of Postgres', wholeNumber)
    .option('--size <units>', 'size of its computes, such as 1 or 0.25-2', computeSize)
    .option('--org <id>', 'organization that it belongs to')
    .action((name: string | undefined, options: CreateOptions) =>
      run((session) => create(session, { name, ...options })),
    );
  projects
    .command('update')
    .alias('rename')
    .description('give a project another name')
    .argument('<project>', 'id or name')
    .requiredOption('--name <name>', 'the new name')
    .action((project: string, options: { readonly name: string }) =>
      run((session) => rename(session, project, options.name)),
    );
  projects
    .command('delete')
    .description('delete a project; `catnap recover` brings it back while that is possible')
    .argument('<project>', 'id or name')
    .action((project: string) => run((session) => remove(session, project)));
}

async function list({ client, writer }: Session): Promise<undefined> {
  const projects: readonly ProjectListItem[] = await client.listProjects();
  writer.list(projects, columns, 'There are no projects.');
}

async function show(session: Session, given: string | undefined): Promise<undefined> {
  const { path } = await findProject(session, { project: given });
  const { project } = await session.client.get<GetProjectReply>(path);
  session.writer.record(project, columns);
}

async function create(session: Session, options: CreateOptions): Promise<undefined> {
  const { name, pgVersion, size, org, wait } = options;
  const sizes = size && { autoscaling_limit_min_cu: size.min, autoscaling_limit_max_cu: size.max };
  const made = await session.client.post<CreateProjectReply>('/projects', {
    project: { name, pg_version: pgVersion, org_id: org, default_endpoint_settings: sizes },
  });
  if (wait) await waitFor(session, made.operations);
  const { project, branch, endpoints, connection_uris: uris } = made;
  if (session.format === 'json') {
    session.writer.record(made, {});
    return;
  }
  const row = { ...project, branch: branch.name, compute: endpoints[0]?.id, uri: uris[0]?.connection_uri };
  const titles = { id: 'project', name: 'name', branch: 'branch', compute: 'compute', uri: 'connection string' };
  session.writer.record(row, titles);
}

async function rename(session: Session, given: string, name: string): Promise<undefined> {
  const { path } = await findProject(session, { project: given });
  const { project } = await session.client.patch<UpdateProjectReply>(path, { project: { name } });
  session.writer.record(project, columns);
}

async function remove(session: Session, given: string): Promise<undefined> {
  const { path } = await findProject(session, { project: given });
  const { project } = await session.client.delete<DeleteProjectReply>(path);
  session.writer.record(project, { id: 'deleted', name: 'name' });
  session.writer.remark('`catnap deleted` shows until when it can be recovered.');
}
