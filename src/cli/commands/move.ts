/** `catnap move`: a project goes to another Catnap, with its databases, roles and passwords, while it is in use. */
import { once } from 'node:events';
import { resolve } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { type Command, Option } from 'commander';
import { databasesOf, type Place, projectPath, uriOf } from '../catalog/place.ts';
import { type ApiClient, ApiRefusal, createClient } from '../kit/client.ts';
import type { ImportReport } from '../kit/copy-parts.ts';
import { CliFailure, sentence } from '../kit/failure.ts';
import type { GetProjectReply, ListProjectEndpointsReply, UpdateProjectReply } from '../kit/generated.ts';
import { waitFor } from '../kit/operations.ts';
import type { RunCommand, Session } from '../kit/session.ts';
import { branchOf, findProject, writerOf } from '../kit/targets.ts';
import { inUnits } from '../kit/units.ts';
import { carry, renameDatabases } from '../move/carry.ts';
import { type MoveOptions, type MovePlan, makePlan, whyNotTaken } from '../move/plan.ts';
import { prepareTarget } from '../move/prepare.ts';
import { openState, type StateFile } from '../move/state.ts';

interface Options extends MoveOptions {
  readonly to: string;
  readonly toApiKey: string;
  readonly toOrg?: string;
  readonly state?: string;
  readonly follow?: boolean;
  readonly dryRun?: boolean;
  readonly giveUp?: boolean;
}

export function addMove(program: Command, run: RunCommand): void {
  program
    .command('move')
    .description('move a project to another Catnap, with its databases, roles and passwords')
    .argument('<project>', 'id or name of the project')
    .requiredOption('--to <url>', 'where the API of the other Catnap is')
    .requiredOption('--to-api-key <key>', 'API key there, or - to read it from the standard input')
    .option('--to-org <id>', 'organization there; needed when the key reaches several')
    .option('--state <folder>', 'where the state of the move is kept (default: this folder)')
    .option('--dry-run', 'say what would be moved, what would not, and what stands against it')
    .option('--follow', 'go on bringing changes until Ctrl-C, and cut over then')
    .addOption(
      new Option('--method <method>', 'copy closes the databases first, and for as long as the copy takes')
        .choices(['replication', 'copy'])
        .default('replication'),
    )
    .option('--enable-replication', 'turn logical replication on in the project, which restarts its computes')
    .option('--no-large-objects', 'leave large objects behind')
    .option('--give-up', 'end a move that is not finished: open the databases again and delete the new project')
    .action((project: string, options: Options) => run((session) => move(session, project, options)));
}

async function move(session: Session, given: string, options: Options): Promise<number | undefined> {
  const { parts, client } = session;
  const key = options.toApiKey === '-' ? (await readAll(parts.stdin)).trim() : options.toApiKey;
  const target = createClient({ url: options.to, apiKey: async () => key });
  const { id } = await findProject(session, { project: given });
  const folder = options.state === undefined ? parts.folder : resolve(parts.folder, options.state);
  const ends = { from: { url: client.url, project: id }, to: { url: target.url } };
  const state = await openState(folder, ends);
  if (options.giveUp) return giveUp(session, target, state);
  if (state.read().finishedAt !== undefined) {
    const note = `this move was finished before, and ${state.path} may be removed`;
    return conclude(session, target, state, { notes: [note], not_moved: [] });
  }
  const plan = await readPlan(session, target, state, options);
  if (options.dryRun) return showPlan(session, plan, options);
  if (plan.refused.length > 0) throw new CliFailure(`the project cannot be moved: ${plan.refused.join('. ')}`);
  if (options.method === 'replication') await turnReplicationOn(session, plan);
  const organization = options.toOrg;
  const replicates = options.method === 'replication';
  const prepared = await sentence(prepareTarget({ session, client: target, plan, state, organization, replicates }));
  const carrying = { session, plan, target: prepared.target, state, options };
  const carried = await sentence(carry({ ...carrying, untilCutOver: () => untilAsked(session, options) }));
  const notes = [...prepared.notes, ...carried.reports.flatMap((report) => report.notes), ...carried.notes];
  return conclude(session, target, state, { ...totalsOf(carried.reports), notes, not_moved: plan.notMoved });
}

async function readPlan(session: Session, target: ApiClient, state: StateFile, options: Options): Promise<MovePlan> {
  const plan = await sentence(makePlan(session, state.read(), options));
  const problem = await whyNotTaken(target, plan.project);
  return problem === null ? plan : { ...plan, refused: [problem, ...plan.refused] };
}

async function turnReplicationOn(session: Session, { project, source }: MovePlan): Promise<void> {
  if (project.settings?.enable_logical_replication === true) return;
  const change = { project: { settings: { enable_logical_replication: true } } };
  const { operations } = await session.client.patch<UpdateProjectReply>(projectPath(source), change);
  await waitFor(session, operations);
}

async function untilAsked({ parts }: Session, { follow }: Options): Promise<void> {
  if (!follow) return;
  parts.stderr.write('The new project has everything. Press Ctrl-C to close the old one and cut over.\n');
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
}

interface Totals {
  readonly method?: string;
  readonly tables?: number;
  readonly rows?: number;
  readonly bytes?: number;
}

interface Facts extends Totals {
  readonly notes: readonly string[];
  readonly not_moved: readonly string[];
}

function totalsOf(reports: readonly ImportReport[]): Totals {
  const sum = (of: (report: ImportReport) => number) => reports.reduce((total, report) => total + of(report), 0);
  return {
    method: reports[0]?.method ?? 'copy',
    tables: sum(({ tables }) => tables),
    rows: sum(({ rows }) => rows),
    bytes: sum(({ bytes }) => bytes),
  };
}

/** Of a move that is finished; also for a run that comes after it. */
async function conclude(session: Session, client: ApiClient, state: StateFile, facts: Facts): Promise<undefined> {
  const { parts, writer, format } = session;
  const target = targetOf(client, state);
  const { closedAs = {}, closedAt = '', finishedAt = '', from, to } = state.read();
  const databases = await databasesOf(target);
  const source = await sourceOf(session, state);
  const connections: Connection[] = [];
  for (const { name, owner_name: role } of databases) {
    const url = await uriOf(target, name, role);
    await sentence(parts.move.forget(url));
    const before = source === null ? null : await uriOf(source, closedAs[name] ?? name, role).catch(() => null);
    connections.push({ database: name, role, old: before === null ? null : named(before, name), new: url });
  }
  const cutOver = Date.parse(finishedAt) - Date.parse(closedAt);
  const record = { project: to.project, endpoint: to.endpoint, ...facts, cut_over_ms: cutOver };
  if (format === 'json') {
    writer.record({ ...record, connections, closed_as: closedAs }, {});
    return;
  }
  const said = { ...record, pause: `${(cutOver / 1_000).toFixed(2)} s` };
  writer.record(said, { project: 'project', endpoint: 'compute', ...totalTitles, pause: 'cut-over' });
  for (const { database, role, ...urls } of connections) {
    writer.remark(`\n${database}, as ${role}:\n  old: ${urls.old ?? '-'}\n  new: ${urls.new}`);
  }
  writer.remark('\nAll roles have the names and passwords that they had; the host is another one.');
  for (const note of facts.notes) writer.remark(`Note: ${note}.`);
  for (const thing of facts.not_moved) writer.remark(`Not moved: ${thing}.`);
  const closed = Object.values(closedAs).join(', ');
  writer.remark(
    `The old project ${from.project} still has its data, in ${closed}, which no client knows: when you do not need it ` +
      `any more, \`catnap projects delete ${from.project}\`.`,
  );
}

interface Connection {
  readonly database: string;
  readonly role: string;
  /** Null if the old project is gone. */
  readonly old: string | null;
  readonly new: string;
}

const totalTitles = { method: 'method', tables: 'tables', rows: 'rows', bytes: 'bytes' } as const;

function named(uri: string, database: string): string {
  const url = new URL(uri);
  url.pathname = `/${encodeURIComponent(database)}`;
  return url.href;
}

function targetOf(client: ApiClient, state: StateFile): Place {
  const { project = '', branch = '', endpoint = '' } = state.read().to;
  return { client, project, branch, endpoint };
}

/** Null if the project is not there any more. */
async function sourceOf(session: Session, state: StateFile): Promise<Place | null> {
  const { project } = state.read().from;
  const path = projectPath({ project });
  if ((await session.client.find<GetProjectReply>(path)) === null) return null;
  const { branch } = await branchOf(session, { id: project, path });
  const { endpoints } = await session.client.get<ListProjectEndpointsReply>(`${path}/endpoints`);
  return { client: session.client, project, branch: branch.id, endpoint: writerOf(branch, endpoints).id };
}

function showPlan({ writer, format }: Session, plan: MovePlan, { method }: Options): number {
  const { project, databases, roles, refused, notMoved } = plan;
  const names = roles.roles.map(({ name }) => name);
  if (format === 'json') {
    const found = databases.map(({ name, owner, bytes }) => ({ name, owner, bytes }));
    writer.record({ project: project.id, method, databases: found, roles: names, refused, not_moved: notMoved }, {});
    return refused.length === 0 ? 0 : 1;
  }
  const size = inUnits(databases.reduce((sum, { bytes }) => sum + bytes, 0));
  const all = databases.map(({ name }) => name).join(', ');
  const shown = { project: `${project.name} (${project.id})`, databases: all, size, roles: names.join(', '), method };
  writer.record(shown, { project: 'project', databases: 'databases', size: 'size', roles: 'roles', method: 'method' });
  for (const thing of notMoved) writer.remark(`Not moved: ${thing}.`);
  for (const problem of refused) writer.remark(`Refused: ${problem}.`);
  if (refused.length === 0) writer.remark('Nothing stands against the move.');
  return refused.length === 0 ? 0 : 1;
}

/** Puts the source back as it was, and deletes the new project, which nobody has been told of. */
async function giveUp(session: Session, client: ApiClient, state: StateFile): Promise<undefined> {
  const { to, closedAs = {}, finishedAt } = state.read();
  if (finishedAt !== undefined)
    throw new CliFailure('the move is finished: clients may have written to the new project');
  const source = await sourceOf(session, state);
  if (source !== null) {
    await renameDatabases(
      source,
      Object.entries(closedAs).map(([name, closed]) => [closed, name]),
    );
    for (const { name, owner_name: owner } of await databasesOf(source)) {
      await sentence(session.parts.move.abandon(await uriOf(source, name, owner)));
    }
  }
  if (to.project !== undefined) await client.delete(projectPath({ project: to.project })).catch(unlessMissing);
  await state.remove();
  session.writer.remark('The old project is as it was before the move.');
}

function unlessMissing(error: unknown): void {
  if (!(error instanceof ApiRefusal) || error.status !== 404) throw error;
}
