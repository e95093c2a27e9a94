/**
 * `catnap upgrade major`: the databases of a branch in a new project of a newer major of Postgres, with the roles and
 * their passwords. The old project stays as it is. A dry run does all of it with a branch of the source, into a project
 * that is removed again, and reports what would not work.
 */
import { EventEmitter, once } from 'node:events';
import type { Command } from 'commander';
import { describeCopy } from '../kit/copy-progress.ts';
import { CliFailure, usageExitCode } from '../kit/failure.ts';
import type {
  CopyProjectBranchPasswordsReply,
  CreateProjectBranchReply,
  CreateProjectReply,
  Endpoint,
  GetProjectReply,
  ListProjectEndpointsReply,
  Project,
} from '../kit/generated.ts';
import { makeCatalog, readCatalog } from '../kit/major-catalog.ts';
import { waitFor } from '../kit/operations.ts';
import { wholeNumber } from '../kit/options.ts';
import { progressLine } from '../kit/progress-line.ts';
import type { RunCommand, Session } from '../kit/session.ts';
import { type BranchTarget, branchOf, connectionOf, findProject, writerOf } from '../kit/targets.ts';

interface Options {
  readonly to: number;
  readonly branch?: string;
  readonly name?: string;
  readonly dryRun?: boolean;
  readonly follow?: boolean;
  readonly largeObjects: boolean;
}

interface Upgrade {
  readonly options: Options;
  readonly project: Project;
  /** The branch itself, or for a dry run the one that was made of it, and its compute. */
  readonly source: BranchTarget;
  readonly from: Endpoint;
  readonly made: CreateProjectReply;
  readonly into: Endpoint;
  readonly databases: readonly string[];
}

interface Outcome {
  readonly database: string;
  readonly outcome: 'copied' | 'failed';
  readonly tables?: number;
  readonly rows?: number;
  readonly method?: string;
  readonly problem?: string;
  readonly notes: readonly string[];
}

export function addUpgradeMajor(upgrade: Command, run: RunCommand): void {
  upgrade
    .command('major')
    .description('copy the databases of a branch into a new project of a newer major of Postgres')
    .argument('<project>', 'id or name of the project; it stays as it is')
    .requiredOption('--to <major>', 'the newer major', wholeNumber)
    .option('--dry-run', 'try it with a branch, report what would not work, and leave nothing behind')
    .option('--branch <branch>', 'id or name of the branch (default: the default branch)')
    .option('--name <name>', 'name of the new project')
    .option('--follow', 'go on bringing changes until Ctrl-C; for a switch without a long pause')
    .option('--no-large-objects', 'copy databases that have large objects, and leave those behind')
    .action((project: string, options: Options) => run((session) => upgradeMajor(session, project, options)));
}

async function upgradeMajor(session: Session, given: string, options: Options): Promise<number> {
  const target = await branchOf(session, await findProject(session, { project: given }), options.branch);
  const { project } = await session.client.get<GetProjectReply>(target.project.path);
  if (options.to <= project.pg_version) {
    throw new CliFailure(
      `project ${project.name} has Postgres ${project.pg_version}; --to must be newer`,
      usageExitCode,
    );
  }
  if (options.dryRun && options.follow) throw new CliFailure('a dry run follows nothing: leave --follow out', 2);
  return options.dryRun ? tryIt(session, target, project, options) : carryOut(session, target, project, options);
}

async function tryIt(session: Session, target: BranchTarget, project: Project, options: Options): Promise<number> {
  const { client } = session;
  const name = `trial of Postgres ${options.to} ${Date.now()}`;
  const copy = await client.post<CreateProjectBranchReply>(`${target.project.path}/branches`, {
    branch: { parent_id: target.branch.id, name },
    endpoints: [{ type: 'read_write' }],
  });
  const source = { ...target, branch: copy.branch, path: `${target.project.path}/branches/${copy.branch.id}` };
  try {
    await waitFor(session, copy.operations);
    const from = writerOf(copy.branch, copy.endpoints);
    const upgrade = await begin(session, { options: { ...options, name }, project, source, from });
    try {
      const outcomes = await copyAll(session, upgrade);
      await copyPasswords(session, upgrade);
      return report(session, outcomes, options);
    } finally {
      await removeForGood(session, upgrade.made.project.id);
    }
  } finally {
    await client.delete(`${source.path}?hard_delete=true`);
  }
}

async function carryOut(session: Session, source: BranchTarget, project: Project, options: Options): Promise<number> {
  const path = `${source.project.path}/endpoints`;
  const from = writerOf(source.branch, (await session.client.get<ListProjectEndpointsReply>(path)).endpoints);
  const upgrade = await begin(session, { options, project, source, from });
  const outcomes = await copyAll(session, upgrade);
  const failed = outcomes.find(({ outcome }) => outcome === 'failed');
  if (failed !== undefined) {
    await removeForGood(session, upgrade.made.project.id);
    throw new CliFailure(`database ${failed.database}: ${failed.problem}; the new project was removed again`);
  }
  await copyPasswords(session, upgrade);
  const { id, name } = upgrade.made.project;
  const uri = await connectionOf({ client: session.client, link: null }, upgrade.into, {});
  const made = { id, name, uri, databases: outcomes };
  session.writer.record(made, { id: 'project', name: 'name', uri: 'connection string' });
  printNotes(session, outcomes);
  session.writer.remark(`Project ${project.id} is as it was. Delete it once the applications use the new one.`);
  return 0;
}

/** The new project, with the roles and empty databases of the source. */
async function begin(session: Session, asked: Omit<Upgrade, 'made' | 'into' | 'databases'>): Promise<Upgrade> {
  const { project, options, source } = asked;
  const catalog = await readCatalog(session.client, source.path);
  const [first] = catalog.databases;
  if (first === undefined) throw new CliFailure(`branch ${source.branch.name} has no databases`);
  const made = await session.client.post<CreateProjectReply>('/projects', {
    project: {
      name: options.name ?? `${project.name} on Postgres ${options.to}`,
      pg_version: options.to,
      org_id: project.org_id,
      store_passwords: project.store_passwords,
      history_retention_seconds: project.history_retention_seconds,
      settings: project.settings,
      default_endpoint_settings: project.default_endpoint_settings,
      branch: {
        name: options.dryRun ? undefined : source.branch.name,
        database_name: first.name,
        role_name: first.owner,
      },
    },
  });
  try {
    await waitFor(session, made.operations);
    await makeCatalog(session, `/projects/${made.project.id}/branches/${made.branch.id}`, catalog);
    const databases = catalog.databases.map(({ name }) => name);
    return { ...asked, made, into: writerOf(made.branch, made.endpoints), databases };
  } catch (error) {
    await removeForGood(session, made.project.id);
    throw error;
  }
}

async function copyAll(session: Session, upgrade: Upgrade): Promise<readonly Outcome[]> {
  const { databases, options } = upgrade;
  if (options.follow) return followAll(session, upgrade);
  return inTurn(databases, (name) => copyOne(session, upgrade, name, async () => {}));
}

/** Until the same moment; the first that fails ends the others. */
async function followAll(session: Session, upgrade: Upgrade): Promise<readonly Outcome[]> {
  const moments = new EventEmitter();
  const end = once(moments, 'end');
  let behind = upgrade.databases.length;
  const whenCaughtUp = async () => {
    behind -= 1;
    if (behind === 0) void untilAsked(session).then(() => moments.emit('end'));
    await end;
  };
  const follow = async (name: string) => {
    const outcome = await copyOne(session, upgrade, name, whenCaughtUp);
    if (outcome.outcome === 'failed') moments.emit('end');
    return outcome;
  };
  return Promise.all(upgrade.databases.map(follow));
}

async function untilAsked({ parts }: Session): Promise<void> {
  parts.stderr.write('The new project has everything. Stop writing to the old one, then press Ctrl-C to finish.\n');
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
}

async function inTurn<From, To>(items: readonly From[], work: (item: From) => Promise<To>): Promise<To[]> {
  const results: To[] = [];
  for (const item of items) results.push(await work(item));
  return results;
}

async function copyOne(
  session: Session,
  { options, from, into }: Upgrade,
  database: string,
  whenCaughtUp: () => Promise<void>,
): Promise<Outcome> {
  const reach = { client: session.client, link: null };
  const line = progressLine(session.parts.stderr);
  const request = {
    source: await connectionOf(reach, from, { database }),
    target: await connectionOf(reach, into, { database }),
    withoutLargeObjects: !options.largeObjects,
    method: options.follow ? ('replication' as const) : ('auto' as const),
    whenCaughtUp,
    sharesRoles: true,
    isSingleTry: true,
  };
  try {
    const done = await session.parts.importDatabase(request, (progress) => line.show(describeCopy(progress)));
    const { tables, rows, method, notes } = done;
    return { database, outcome: 'copied', tables, rows, method, notes };
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return { database, outcome: 'failed', problem, notes: [] };
  } finally {
    line.clear();
  }
}

async function copyPasswords(session: Session, { made, source }: Upgrade): Promise<void> {
  const path = `/projects/${made.project.id}/branches/${made.branch.id}/copy_passwords`;
  const body = { source: { project_id: source.project.id, branch_id: source.branch.id } };
  const { operations } = await session.client.post<CopyProjectBranchPasswordsReply>(path, body);
  await waitFor(session, operations);
}

async function removeForGood(session: Session, projectId: string): Promise<void> {
  await session.client.delete(`/projects/${projectId}`);
  await session.client.post(`/projects/${projectId}/purge`, {});
}

function report(session: Session, outcomes: readonly Outcome[], { to }: Options): number {
  const { writer } = session;
  const columns = { database: 'database', outcome: 'outcome', tables: 'tables', rows: 'rows', method: 'method' };
  writer.list(outcomes, columns, '');
  const failed = outcomes.filter(({ outcome }) => outcome === 'failed');
  for (const { database, problem } of failed) writer.remark(`Database ${database} failed: ${problem}.`);
  printNotes(session, outcomes);
  writer.remark(
    failed.length === 0
      ? `Everything was copied to Postgres ${to} and removed again. Run your tests on the new project before you switch.`
      : `The upgrade to Postgres ${to} would fail.`,
  );
  return failed.length === 0 ? 0 : 1;
}

function printNotes({ writer }: Session, outcomes: readonly Outcome[]): void {
  for (const { database, notes } of outcomes) {
    for (const note of notes) writer.remark(`Note on ${database}: ${note}.`);
  }
}
