/** The part of `catnap branches` that is about content: restore, reset, and schemas as text and compared. */
import type { Command } from 'commander';
import { CliFailure, usageExitCode } from '../kit/failure.ts';
import type {
  GetProjectBranchReply,
  GetProjectBranchSchemaComparisonReply,
  GetProjectBranchSchemaReply,
  ListProjectBranchDatabasesReply,
  RestoreProjectBranchReply,
} from '../kit/generated.ts';
import { waitFor } from '../kit/operations.ts';
import { inProject, momentOf, type Waiting, withWait } from '../kit/options.ts';
import type { RunCommand, Session } from '../kit/session.ts';
import { type BranchTarget, branchOf, findBranch, findProject, type InProject } from '../kit/targets.ts';

interface RestoreOptions extends InProject, Waiting {
  readonly preserveUnderName?: string;
}

interface SchemaOptions extends InProject {
  readonly database?: string;
}

const databaseOption = ['--database <name>', 'database (default: the oldest)'] as const;
const pointText = 'a branch, and after an @ a time or an LSN of its history';

export function addBranchContent(branches: Command, run: RunCommand): void {
  withWait(
    inProject(branches.command('restore').description('replace what a branch holds, with a moment of any branch')),
  )
    .argument('<branch>', 'id or name of the branch that is restored')
    .argument('<source>', `${pointText}; ^self and ^parent stand for these two`)
    .option('--preserve-under-name <name>', 'keep what the branch holds now in a new branch of this name')
    .action((branch: string, source: string, options: RestoreOptions) =>
      run((session) => restore(session, branch, source, options)),
    );
  withWait(inProject(branches.command('reset').description('give a branch what its parent holds now')))
    .argument('<branch>', 'id or name of the branch')
    .option('--parent', 'what neonctl asks for; there is no other way')
    .option('--preserve-under-name <name>', 'keep what the branch holds now in a new branch of this name')
    .action((branch: string, options: RestoreOptions) =>
      run((session) => restore(session, branch, '^parent', options)),
    );
  inProject(branches.command('schema').description('print the schema of a branch as SQL'))
    .argument('[branch]', pointText)
    .option(...databaseOption)
    .action((point: string | undefined, options: SchemaOptions) => run((session) => schema(session, point, options)));
  inProject(branches.command('schema-diff').description('print how the schema of a branch differs from another one'))
    .argument('[branch]', pointText)
    .argument('[base]', `what it is compared with: ${pointText} (default: its parent)`)
    .option(...databaseOption)
    .action((point: string | undefined, base: string | undefined, options: SchemaOptions) =>
      run((session) => compare(session, point, base, options)),
    );
}

interface Point {
  readonly branch: string | undefined;
  readonly lsn?: string;
  readonly timestamp?: string;
}

/** `main@2026-01-31T12:00:00Z`; an empty name is the default branch. */
function parsePoint(text: string | undefined): Point {
  const [, branch = '', at] = /^([^@]*)(?:@(.+))?$/.exec(text ?? '') ?? [];
  if (text?.includes('@') && at === undefined) {
    throw new CliFailure(`${text} names no moment; allowed: ${pointText}`, usageExitCode);
  }
  return { branch: branch === '' ? undefined : branch, ...momentOf(at) };
}

async function restore(session: Session, given: string, source: string, options: RestoreOptions): Promise<undefined> {
  const project = await findProject(session, options);
  const target = await branchOf(session, project, given);
  const { branch: from, lsn, timestamp } = parsePoint(source);
  const restored = await session.client.post<RestoreProjectBranchReply>(`${target.path}/restore`, {
    source_branch_id: await sourceId(session, target, from),
    source_lsn: lsn,
    source_timestamp: timestamp,
    preserve_under_name: options.preserveUnderName,
  });
  const titles = { id: 'restored', name: 'name', current_state: 'state', last_reset_at: 'restored at' };
  if (options.wait) await waitFor(session, restored.operations);
  const { branch } = options.wait ? await session.client.get<GetProjectBranchReply>(target.path) : restored;
  session.writer.record(branch, titles);
}

async function sourceId(session: Session, target: BranchTarget, given: string | undefined): Promise<string> {
  if (given === '^self') return target.branch.id;
  if (given !== '^parent') return (await branchOf(session, target.project, given)).branch.id;
  if (target.branch.parent_id !== undefined) return target.branch.parent_id;
  throw new CliFailure(`branch ${target.branch.name} has no parent`);
}

async function schema(session: Session, text: string | undefined, options: SchemaOptions): Promise<undefined> {
  const { branch, lsn, timestamp } = parsePoint(text);
  const target = await findBranch(session, { ...options, ...(branch !== undefined && { branch }) });
  const query = { db_name: await databaseOf(session, target, options), lsn, timestamp };
  const reply = await session.client.get<GetProjectBranchSchemaReply>(`${target.path}/schema`, query);
  if (session.format === 'json') session.writer.record(reply, {});
  else session.parts.stdout.write(reply.sql);
}

async function compare(
  session: Session,
  text: string | undefined,
  baseText: string | undefined,
  options: SchemaOptions,
): Promise<undefined> {
  const { branch, lsn, timestamp } = parsePoint(text);
  const base = parsePoint(baseText);
  const target = await findBranch(session, { ...options, ...(branch !== undefined && { branch }) });
  const reply = await session.client.get<GetProjectBranchSchemaComparisonReply>(`${target.path}/compare_schema`, {
    db_name: await databaseOf(session, target, options),
    lsn,
    timestamp,
    base_branch_id: baseText === undefined ? undefined : await sourceId(session, target, base.branch),
    base_lsn: base.lsn,
    base_timestamp: base.timestamp,
  });
  if (session.format === 'json') session.writer.record(reply, {});
  else if (reply.diff === '') session.writer.remark('The schemas are the same.');
  else session.parts.stdout.write(reply.diff);
}

async function databaseOf({ client, link }: Session, target: BranchTarget, options: SchemaOptions): Promise<string> {
  const wanted = options.database ?? (link?.project === target.project.id ? link.database : undefined);
  if (wanted !== undefined) return wanted;
  const { databases } = await client.get<ListProjectBranchDatabasesReply>(`${target.path}/databases`);
  const [oldest] = databases;
  if (oldest === undefined) throw new CliFailure(`branch ${target.branch.name} has no database`);
  return oldest.name;
}
