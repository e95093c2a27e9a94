/** `catnap computes` and `catnap logs`: the servers of branches, their sizes and naps, and what they have logged. */
import { type Command, Option } from 'commander';
import { CliFailure, usageExitCode } from '../kit/failure.ts';
import type {
  CreateProjectEndpointReply,
  Endpoint,
  ListProjectEndpointLogsReply,
  ListProjectEndpointsReply,
  UpdateProjectEndpointReply,
} from '../kit/generated.ts';
import { waitFor } from '../kit/operations.ts';
import { computeSize, inProject, napSeconds, onBranch, type Waiting, wholeNumber, withWait } from '../kit/options.ts';
import type { RunCommand, Session } from '../kit/session.ts';
import { branchOf, findBranch, findCompute, findProject, type OnBranch } from '../kit/targets.ts';

interface Shape {
  readonly size?: { readonly min: number; readonly max: number };
  readonly suspendTimeout?: number;
  readonly name?: string;
}

interface CreateOptions extends OnBranch, Waiting, Shape {
  readonly readOnly?: boolean;
}

const computeArgument = [
  '[compute]',
  'id or name of a compute or branch (default: that of the linked or default branch)',
] as const;
const columns = {
  id: 'id',
  name: 'name',
  branch_id: 'branch',
  type: 'type',
  current_state: 'state',
  current_cu: 'size now',
  autoscaling_limit_min_cu: 'min',
  autoscaling_limit_max_cu: 'max',
  suspend_timeout_seconds: 'naps after (s)',
};

export function addComputes(program: Command, run: RunCommand): void {
  const computes = program
    .command('computes')
    .aliases(['compute', 'endpoints'])
    .description('computes: list, create, start, suspend, change');
  onBranch(computes.command('list').description('list the computes of a project, or of a branch')).action(
    (options: OnBranch) => run((session) => list(session, options)),
  );
  onBranch(computes.command('get').description('show a compute'))
    .argument(...computeArgument)
    .action((given: string | undefined, options: OnBranch) => run((session) => show(session, given, options)));
  withShapeAndType(withWait(onBranch(computes.command('create').description('make a compute for a branch')))).action(
    (options: CreateOptions) => run((session) => create(session, options)),
  );
  withShape(withWait(onBranch(computes.command('update').description('change the size or the nap of a compute'))))
    .argument(...computeArgument)
    .action((given: string | undefined, options: OnBranch & Waiting & Shape) =>
      run((session) => update(session, given, options)),
    );
  for (const [verb, description] of verbs) {
    withWait(onBranch(computes.command(verb).description(description)))
      .argument(...computeArgument)
      .action((given: string | undefined, options: OnBranch & Waiting) =>
        run((session) => command(session, given, verb, options)),
      );
  }
  withWait(inProject(computes.command('delete').description('delete a compute; the data of its branch stays')))
    .argument('<compute>', 'id or name of the compute')
    .action((given: string, options: OnBranch & Waiting) => run((session) => remove(session, given, options)));
  onBranch(program.command('logs').description('what a compute has logged; wakes nothing'))
    .argument(...computeArgument)
    .addOption(new Option('--limit <entries>', 'how many, the last ones').argParser(wholeNumber).default(100))
    .action((given: string | undefined, options: OnBranch & { limit: number }) =>
      run((session) => logs(session, given, options)),
    );
}

/** The same as `computes create`, among the branches, where neonctl has it. */
export function addComputeOfBranch(branches: Command, run: RunCommand): void {
  withShapeAndType(withWait(inProject(branches.command('add-compute').description('make a compute for a branch'))))
    .argument('<branch>', 'id or name of the branch')
    .action((branch: string, options: CreateOptions) => run((session) => create(session, { ...options, branch })));
}

const verbs = [
  ['start', 'wake a compute'],
  ['suspend', 'put a compute to sleep'],
  ['restart', 'stop a compute and start it again'],
] as const;

function withShape(command: Command): Command {
  return command
    .option('--size <units>', 'compute units, such as 1 or 0.25-2', computeSize)
    .option(
      '--suspend-timeout <seconds>',
      'how long it is unused before it naps; 0 is the default, -1 for never',
      napSeconds,
    )
    .option('--name <name>', 'a label for people');
}

const withShapeAndType = (command: Command) =>
  withShape(command).option('--read-only', 'a read replica; a branch has one compute that takes writes');

function settingsOf({ size, suspendTimeout, name }: Shape) {
  return {
    ...(size && { autoscaling_limit_min_cu: size.min, autoscaling_limit_max_cu: size.max }),
    suspend_timeout_seconds: suspendTimeout,
    name,
  };
}

const pathOf = ({ project_id: project, id }: Endpoint) => `/projects/${encodeURIComponent(project)}/endpoints/${id}`;

async function list(session: Session, options: OnBranch): Promise<undefined> {
  const project = await findProject(session, options);
  const branch = options.branch === undefined ? undefined : await branchOf(session, project, options.branch);
  const path = `${branch?.path ?? project.path}/endpoints`;
  const { endpoints } = await session.client.get<ListProjectEndpointsReply>(path);
  session.writer.list(endpoints, columns, 'There are no computes.');
}

async function show(session: Session, given: string | undefined, options: OnBranch): Promise<undefined> {
  const endpoint = await findCompute(session, given, options);
  const why = endpoint.why_awake?.description;
  const row = session.format === 'json' ? endpoint : { ...endpoint, why };
  session.writer.record(row, { ...columns, host: 'host', ...(why !== undefined && { why: 'awake because' }) });
}

async function create(session: Session, options: CreateOptions): Promise<undefined> {
  const { branch, project } = await findBranch(session, options);
  const type = options.readOnly ? 'read_only' : 'read_write';
  const body = { endpoint: { branch_id: branch.id, type, ...settingsOf(options) } };
  await finish(
    session,
    await session.client.post<CreateProjectEndpointReply>(`${project.path}/endpoints`, body),
    options,
  );
}

async function update(
  session: Session,
  given: string | undefined,
  options: OnBranch & Waiting & Shape,
): Promise<undefined> {
  const changes = settingsOf(options);
  if (Object.values(changes).every((value) => value === undefined)) {
    throw new CliFailure('say what to change: --size, --suspend-timeout or --name', usageExitCode);
  }
  const path = pathOf(await findCompute(session, given, options));
  await finish(session, await session.client.patch<UpdateProjectEndpointReply>(path, { endpoint: changes }), options);
}

async function command(
  session: Session,
  given: string | undefined,
  verb: string,
  options: OnBranch & Waiting,
): Promise<undefined> {
  const path = pathOf(await findCompute(session, given, options));
  await finish(session, await session.client.post<UpdateProjectEndpointReply>(`${path}/${verb}`, {}), options);
}

/** Shows the compute as it is once the work is done. */
async function finish(session: Session, reply: UpdateProjectEndpointReply, { wait }: Waiting): Promise<void> {
  if (!wait) return session.writer.record(reply.endpoint, columns);
  await waitFor(session, reply.operations);
  const { endpoint } = await session.client.get<{ readonly endpoint: Endpoint }>(pathOf(reply.endpoint));
  session.writer.record(endpoint, columns);
}

async function remove(session: Session, given: string, options: OnBranch & Waiting): Promise<undefined> {
  const endpoint = await findCompute(session, given, options);
  const { operations } = await session.client.delete<Partial<UpdateProjectEndpointReply>>(pathOf(endpoint));
  if (options.wait) await waitFor(session, operations ?? []);
  session.writer.record(endpoint, { id: 'deleted', name: 'name', branch_id: 'branch' });
}

async function logs(
  session: Session,
  given: string | undefined,
  options: OnBranch & { readonly limit: number },
): Promise<undefined> {
  const path = `${pathOf(await findCompute(session, given, options))}/logs`;
  const { logs: entries } = await session.client.get<ListProjectEndpointLogsReply>(path, { limit: options.limit });
  session.writer.list(
    entries,
    { at: 'at', level: 'level', process: 'process', message: 'message' },
    'The log is empty.',
  );
}
