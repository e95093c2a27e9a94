/**
 * `catnap upgrade major`: the databases of a branch in a new project of a newer major of Postgres, with the roles and
 * their passwords. The old project stays as it is. A dry run does all of it with a branch of the source, into a project
 * that is removed again, and reports what would not work.
 */
import { EventEmitter, once } from 'node:events';
import type { Command } from 'commander';
import {
  type BranchPlace,
  branchPath,
  databasesOf,
  type Place,
  projectPath,
  uriOf,
  withLogin,
} from '../catalog/place.ts';
import {
  type Catalog,
  type CopiedDatabase,
  makeCatalog,
  projectLike,
  readRoles,
  readSecrets,
  type Secrets,
  takePasswords,
} from '../catalog/roles.ts';
import { resetOwnersPasswords } from '../kit/branch-passwords.ts';
import { describeCopy } from '../kit/copy-progress.ts';
import { CliFailure, sentence, usageExitCode } from '../kit/failure.ts';
import type {
  Branch,
  CreateProjectBranchReply,
  CreateProjectReply,
  GetProjectReply,
  ListProjectEndpointsReply,
  Project,
} from '../kit/generated.ts';
import { waitFor } from '../kit/operations.ts';
import { wholeNumber } from '../kit/options.ts';
import { progressLine } from '../kit/progress-line.ts';
import type { RunCommand, Session } from '../kit/session.ts';
import { branchOf, findProject, writerOf } from '../kit/targets.ts';

interface Options {
  readonly to: number;
  readonly branch?: string;
  readonly name?: string;
  readonly dryRun?: boolean;
  readonly follow?: boolean;
  readonly largeObjects: boolean;
}

/** What is asked for, and what is known before anything is made. */
interface Asked extends Secrets {
  readonly options: Options;
  readonly project: Project;
  readonly branch: Branch;
  readonly origin: BranchPlace;
  readonly databases: readonly CopiedDatabase[];
}

interface Upgrade extends Asked, Catalog {
  /** The branch itself, or one that was made of it. */
  readonly source: Place;
  readonly target: Place;
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
  const { client } = session;
  const found = await findProject(session, { project: given });
  const { branch } = await branchOf(session, found, options.branch);
  const { project } = await client.get<GetProjectReply>(found.path);
  if (options.to <= project.pg_version) {
    throw new CliFailure(
      `project ${project.name} has Postgres ${project.pg_version}; --to must be newer`,
      usageExitCode,
    );
  }
  if (options.dryRun && options.follow) throw new CliFailure('a dry run follows nothing: leave --follow out', 2);
  const origin = { client, project: project.id, branch: branch.id };
  const databases = (await databasesOf(origin)).map(({ name, owner_name }) => ({
    name,
    owner: owner_name,
    sourceName: name,
  }));
  const asked = { options, project, branch, origin, databases, ...(await readSecrets(session, origin)) };
  const isHidden = requireOwners(asked);
  if (options.dryRun || isHidden) return onBranch(session, asked);
  const { endpoints } = await client.get<ListProjectEndpointsReply>(`${found.path}/endpoints`);
  return carryOut(session, asked, { ...origin, endpoint: writerOf(branch, endpoints).id });
}

/** Databases are copied as their owners. Returns whether the password of one of them is not known. */
function requireOwners({ options, branch, databases, secrets, verifiers }: Asked): boolean {
  if (databases.length === 0) throw new CliFailure(`branch ${branch.name} has no databases`);
  const locked = databases.find(({ owner }) => !secrets.has(owner));
  if (locked !== undefined) {
    throw new CliFailure(`database ${locked.name} cannot be copied: its owner ${locked.owner} cannot log in`);
  }
  const hidden = databases.find(({ owner }) => secrets.get(owner) === verifiers.get(owner));
  if (options.follow && hidden !== undefined) {
    throw new CliFailure(`--follow needs the password of ${hidden.owner}, which is not stored: leave --follow out`, 2);
  }
  return hidden !== undefined;
}

const trialName = ({ to }: Options) => `trial of Postgres ${to} ${Date.now()}`;

/** From a branch made for it, whose owners get passwords with which it can be read. */
async function onBranch(session: Session, asked: Asked): Promise<number> {
  const { client } = session;
  const { options, origin } = asked;
  const copy = await client.post<CreateProjectBranchReply>(`${projectPath(origin)}/branches`, {
    branch: { parent_id: origin.branch, name: trialName(options) },
    endpoints: [{ type: 'read_write' }],
  });
  const source = { ...origin, branch: copy.branch.id, endpoint: writerOf(copy.branch, copy.endpoints).id };
  try {
    await waitFor(session, copy.operations);
    return await carryOut(session, asked, source, await resetOwnersPasswords(client, branchPath(source)));
  } finally {
    await client.delete(`${branchPath(source)}?hard_delete=true`);
  }
}

/** `passwords` are those of the source that may not be stored. */
async function carryOut(
  session: Session,
  asked: Asked,
  place: Place,
  passwords = new Map<string, string>(),
): Promise<number> {
  const { options, project, branch, origin, databases } = asked;
  const { dryRun, to } = options;
  const made = await session.client.post<CreateProjectReply>('/projects', {
    project: {
      ...projectLike(project, dryRun ? undefined : branch.name, databases),
      name: dryRun ? trialName(options) : (options.name ?? `${project.name} on Postgres ${to}`),
      pg_version: to,
      org_id: project.org_id,
    },
  });
  let isKept = false;
  try {
    await waitFor(session, made.operations);
    const target = placeOf(session, made);
    const uri = target.known.uri.replaceAll(target.endpoint, place.endpoint);
    const source = { ...place, known: { uri, passwords } };
    const catalog = { ...asked, roles: await sentence(readRoles(session, source, databases)) };
    const left = await sentence(makeCatalog(session, target, catalog));
    const upgrade = { ...catalog, source, target };
    const copied = await copyAll(session, upgrade);
    // Roles and settings belong to no database, so their notes are with the first one.
    const outcomes = copied.map((one, at) => (at === 0 ? { ...one, notes: [...left, ...one.notes] } : one));
    const given = await sentence(takePasswords(session, origin, target, catalog));
    if (dryRun) return report(session, outcomes, options);
    const failed = outcomes.find(({ outcome }) => outcome === 'failed');
    if (failed !== undefined) {
      throw new CliFailure(`database ${failed.database}: ${failed.problem}; the new project was removed again`);
    }
    isKept = true;
    return conclude(session, made, { ...upgrade, ...given }, outcomes);
  } finally {
    if (!isKept) await removeForGood(session, made.project.id);
  }
}

function placeOf(
  { client }: Session,
  { project, branch, endpoints, roles, connection_uris: uris }: CreateProjectReply,
) {
  const passwords = new Map(roles.map(({ name, password = '' }) => [name, password]));
  const known = { uri: uris[0]?.connection_uri ?? '', passwords };
  return { client, project: project.id, branch: branch.id, endpoint: writerOf(branch, endpoints).id, known };
}

async function copyAll(session: Session, upgrade: Upgrade): Promise<readonly Outcome[]> {
  if (upgrade.options.follow) return followAll(session, upgrade);
  const outcomes: Outcome[] = [];
  for (const one of upgrade.databases) outcomes.push(await copyOne(session, upgrade, one, async () => {}));
  return outcomes;
}

/** Until the same moment; the first that fails ends the others. */
async function followAll(session: Session, upgrade: Upgrade): Promise<readonly Outcome[]> {
  const moments = new EventEmitter();
  const end = once(moments, 'end');
  const { databases } = upgrade;
  let behind = databases.length;
  const whenCaughtUp = async () => {
    behind -= 1;
    if (behind === 0) void untilAsked(session).then(() => moments.emit('end'));
    await end;
  };
  const follow = async (database: CopiedDatabase) => {
    const outcome = await copyOne(session, upgrade, database, whenCaughtUp);
    if (outcome.outcome === 'failed') moments.emit('end');
    return outcome;
  };
  return Promise.all(databases.map(follow));
}

async function untilAsked({ parts }: Session): Promise<void> {
  parts.stderr.write('The new project has everything. Stop writing to the old one, then press Ctrl-C to finish.\n');
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
}

async function copyOne(
  session: Session,
  { options, source, target }: Upgrade,
  { name: database, owner }: CopiedDatabase,
  whenCaughtUp: () => Promise<void>,
): Promise<Outcome> {
  const line = progressLine(session.parts.stderr);
  const request = {
    source: await uriOf(source, database, owner),
    target: await uriOf(target, database, owner),
    withoutLargeObjects: !options.largeObjects,
    method: options.follow ? ('replication' as const) : ('auto' as const),
    whenCaughtUp,
    hasRoles: true,
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

function conclude(session: Session, made: CreateProjectReply, upgrade: Upgrade, outcomes: readonly Outcome[]): number {
  const { id, name } = made.project;
  const record = { id, name, uri: finalUri(upgrade), databases: outcomes };
  session.writer.record(record, { id: 'project', name: 'name', uri: 'connection string' });
  printNotes(session, outcomes);
  session.writer.remark(`Project ${upgrade.project.id} is as it was. Delete it once the applications use the new one.`);
  return 0;
}

/** Of the first database. Without the password where Catnap does not know it. */
function finalUri({ target, databases: [first], secrets, verifiers }: Upgrade): string {
  const { name: database = '', owner: role = '' } = first ?? {};
  const secret = secrets.get(role) ?? '';
  const password = secret === verifiers.get(role) ? '' : secret;
  return withLogin(target.known?.uri ?? '', { database, role, password });
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
