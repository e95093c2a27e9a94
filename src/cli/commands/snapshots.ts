/** `catnap snapshots`: takes, lists, restores and deletes snapshots of branches, and sets when they are taken. */
import { type Command, Option } from 'commander';
import { CliFailure } from '../kit/failure.ts';
import type {
  CreateSnapshotReply,
  FinalizeRestoreBranchReply,
  GetSnapshotScheduleReply,
  ListSnapshotsReply,
  RestoreSnapshotReply,
  Snapshot,
} from '../kit/generated.ts';
import { waitFor } from '../kit/operations.ts';
import { momentOf, projectOption, type Waiting, wholeNumber, withWait } from '../kit/options.ts';
import type { RunCommand, Session } from '../kit/session.ts';
import { branchOf, findProject, type InProject, single } from '../kit/targets.ts';

const branchArgument = ['<branch>', 'id or name of the branch'] as const;
const snapshotArgument = ['<snapshot>', 'id, slug or name of the snapshot'] as const;

export function addSnapshots(program: Command, run: RunCommand): void {
  const snapshots = program.command('snapshots').description('snapshots of branches: take, list, restore, delete');
  snapshots
    .command('list')
    .description('list the snapshots of a project, also those of deleted branches')
    .option(...projectOption)
    .action((options: InProject) => run((session) => list(session, options)));
  withWait(snapshots.command('create'))
    .description('take a snapshot of a branch as it is now, or was')
    .argument(...branchArgument)
    .option(...projectOption)
    .option('--name <name>', 'what you will recognise it by')
    .option('--at <moment>', 'a time (2026-01-31T12:00:00Z) or an LSN (0/1DE2850) in the history of the branch')
    .option('--expires-at <time>', 'when it is deleted by itself (default: never)')
    .action((branch: string, options: CreateOptions) => run((session) => create(session, branch, options)));
  addRestore(snapshots, run);
  withWait(snapshots.command('delete'))
    .description('delete a snapshot; branches that were restored from it stay')
    .argument(...snapshotArgument)
    .option(...projectOption)
    .action((given: string, options: InProject & Waiting) => run((session) => remove(session, given, options)));
  addSchedule(snapshots, run);
}

function addRestore(snapshots: Command, run: RunCommand): void {
  withWait(snapshots.command('restore'))
    .description('make a branch from a snapshot, and let it replace another one if asked')
    .argument(...snapshotArgument)
    .option(...projectOption)
    .option('--name <name>', 'name of the new branch')
    .option('--replace <branch>', 'the branch that it is to replace (default: the one that it was taken of)')
    .option('--finalize', 'replace that branch at once: its computes and its name move to the new one')
    .action((given: string, options: RestoreOptions) => run((session) => restore(session, given, options)));
  withWait(snapshots.command('finalize'))
    .description('let a restored branch replace the other one: computes and name move to it')
    .argument(...branchArgument)
    .option(...projectOption)
    .option('--name <name>', 'new name of the branch that is replaced')
    .action((branch: string, options: FinalizeOptions) => run((session) => finalize(session, branch, options)));
}

function addSchedule(snapshots: Command, run: RunCommand): void {
  const frequency = new Option('--every <period>', 'take one every …');
  snapshots
    .command('schedule')
    .description('show when snapshots of a branch are taken, or change it')
    .argument(...branchArgument)
    .option(...projectOption)
    .addOption(frequency.choices(['hour', 'day', 'week', 'month', 'year']))
    .option('--hour <hour>', 'at this hour, in UTC', wholeNumber)
    .option('--day <day>', 'on this day of the week (1 is Monday) or of the month', wholeNumber)
    .option('--month <month>', 'in this month', wholeNumber)
    .option('--keep <days>', 'for how many days each is kept (default: for good)', wholeNumber)
    .option('--none', 'take no more')
    .action((branch: string, options: ScheduleOptions) => run((session) => schedule(session, branch, options)));
}

const columns = {
  id: 'id',
  name: 'name',
  status: 'status',
  source_branch_id: 'branch',
  created_at: 'created at',
  expires_at: 'expires at',
  full_size: 'bytes',
  diff_size: 'not shared',
};

async function list(session: Session, options: InProject): Promise<undefined> {
  const { path } = await findProject(session, options);
  const { snapshots } = await session.client.get<ListSnapshotsReply>(`${path}/snapshots`);
  session.writer.list(snapshots, columns, 'There are no snapshots.');
}

interface CreateOptions extends InProject, Waiting {
  readonly name?: string;
  readonly at?: string;
  readonly expiresAt?: string;
}

async function create(session: Session, branch: string, options: CreateOptions): Promise<undefined> {
  const { name, at, expiresAt } = options;
  const target = await branchOf(session, await findProject(session, options), branch);
  const query = { name, expires_at: expiresAt, ...momentOf(at) };
  const { snapshot, operations } = await session.client.post<CreateSnapshotReply>(`${target.path}/snapshot`, {}, query);
  if (options.wait) await waitFor(session, operations);
  const shown = options.wait ? await snapshotNow(session, target.project.path, snapshot) : snapshot;
  session.writer.record(shown, columns);
}

/** It has its size once it is there. */
async function snapshotNow({ client }: Session, project: string, made: Snapshot): Promise<Snapshot> {
  const { snapshots } = await client.get<ListSnapshotsReply>(`${project}/snapshots`);
  return snapshots.find(({ id }) => id === made.id) ?? made;
}

interface RestoreOptions extends InProject, Waiting {
  readonly name?: string;
  readonly replace?: string;
  readonly finalize?: boolean;
}

async function restore(session: Session, given: string, options: RestoreOptions): Promise<undefined> {
  const { name, replace, finalize: isFinal = false } = options;
  const project = await findProject(session, options);
  const target = replace === undefined ? undefined : (await branchOf(session, project, replace)).branch.id;
  const path = `${project.path}/snapshots/${await findSnapshot(session, project.path, given)}/restore`;
  const body = { name, target_branch_id: target, finalize_restore: isFinal };
  const { branch, endpoints, operations } = await session.client.post<RestoreSnapshotReply>(path, body);
  if (options.wait) await waitFor(session, operations);
  const compute = endpoints[0]?.id;
  session.writer.record({ ...branch, compute }, { id: 'branch', name: 'name', compute: 'compute' });
  if (!isFinal) session.writer.remark(`To let it replace the other branch: \`catnap snapshots finalize ${branch.id}\``);
}

interface FinalizeOptions extends InProject, Waiting {
  readonly name?: string;
}

async function finalize(session: Session, branch: string, options: FinalizeOptions): Promise<undefined> {
  const path = `${await branchPath(session, branch, options)}/finalize_restore`;
  const body = options.name === undefined ? {} : { name: options.name };
  const { operations } = await session.client.post<FinalizeRestoreBranchReply>(path, body);
  const shown = options.wait ? await waitFor(session, operations) : operations;
  session.writer.list(shown, { id: 'operation', action: 'action', status: 'status' }, 'Nothing is to be done.');
}

async function remove(session: Session, given: string, options: InProject & Waiting): Promise<undefined> {
  const { path } = await findProject(session, options);
  const id = await findSnapshot(session, path, given);
  type Reply = Pick<RestoreSnapshotReply, 'operations'>;
  const { operations } = await session.client.delete<Reply>(`${path}/snapshots/${id}`);
  if (options.wait) await waitFor(session, operations);
  session.writer.record({ id }, { id: 'deleted' });
}

interface ScheduleOptions extends InProject {
  readonly every?: 'hour' | 'day' | 'week' | 'month' | 'year';
  readonly hour?: number;
  readonly day?: number;
  readonly month?: number;
  readonly keep?: number;
  /** Commander's name for `--none`. */
  readonly none?: boolean;
}

const frequencies = { hour: 'hourly', day: 'daily', week: 'weekly', month: 'monthly', year: 'yearly' } as const;
const daySeconds = 86_400;

async function schedule(session: Session, branch: string, options: ScheduleOptions): Promise<undefined> {
  const path = `${await branchPath(session, branch, options)}/backup_schedule`;
  const { every, hour, day, month, keep, none } = options;
  if (every === undefined && [hour, day, month, keep].some((value) => value !== undefined)) {
    throw new CliFailure('--hour, --day, --month and --keep need --every', 2);
  }
  if (every !== undefined) {
    const retention = keep === undefined ? undefined : keep * daySeconds;
    const item = { frequency: frequencies[every], hour, day, month, retention_seconds: retention };
    await session.client.put<object>(path, { schedule: [item] });
  } else if (none) {
    await session.client.put<object>(path, { schedule: [] });
  }
  const shown = await session.client.get<GetSnapshotScheduleReply>(path);
  const titles = { frequency: 'frequency', month: 'month', day: 'day', hour: 'hour', retention_seconds: 'kept (s)' };
  session.writer.list(shown.schedule, titles, 'No snapshots are taken by themselves.');
  if (shown.next_at !== undefined) session.writer.remark(`The next one is due at ${shown.next_at}.`);
  if (shown.error !== undefined) session.writer.remark(`The last one could not be taken: ${shown.error}.`);
}

async function branchPath(session: Session, given: string, options: InProject): Promise<string> {
  return (await branchOf(session, await findProject(session, options), given)).path;
}

async function findSnapshot({ client }: Session, project: string, given: string): Promise<string> {
  const { snapshots } = await client.get<ListSnapshotsReply>(`${project}/snapshots`);
  const exact = snapshots.find(({ id, slug }) => id === given || slug === given);
  const found =
    exact ??
    single(
      'snapshot',
      given,
      snapshots.filter(({ name }) => name === given),
    );
  return found.id;
}
