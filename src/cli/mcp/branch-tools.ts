/** Tools about whole branches: compare, make, delete and restore them, and a way in for other programs. */
import { z } from 'zod';
import { resetOwnersPasswords } from '../kit/branch-passwords.ts';
import { CliFailure } from '../kit/failure.ts';
import type {
  CreateProjectBranchReply,
  DeleteProjectBranchReply,
  GetProjectBranchReply,
  GetProjectBranchSchemaComparisonReply,
  ListProjectBranchDatabasesReply,
  RestoreProjectBranchReply,
} from '../kit/generated.ts';
import { untilDone } from '../kit/operations.ts';
import { momentOf } from '../kit/options.ts';
import { type BranchTarget, branchOf, connectionOf, findBranch, findCompute, findProject } from '../kit/targets.ts';
import { branchView, computeView } from './describe-tools.ts';
import { mayChangeBranches, mayReadAll, mayRunSql } from './key.ts';
import { adds, changes, databaseInput, type Place, reads, type Toolbox } from './toolbox.ts';

const branchName = z.string().min(1).describe('Id or name of the branch');
const moment = 'A time (2026-01-31T12:00:00Z) or an LSN (0/1DE2850)';

export function addBranchTools(tools: Toolbox): void {
  if (mayReadAll(tools.key)) addComparison(tools);
  if (tools.access !== 'read' && mayChangeBranches(tools.key)) addChanges(tools);
  // Only here: a branch has the passwords of its parent, so whoever has one string has them all.
  if (tools.access === 'write' && mayRunSql(tools.key)) addConnectionString(tools);
}

function addComparison(tools: Toolbox): void {
  tools.add(
    'compare_schemas',
    {
      title: 'Compare schemas',
      description: 'Returns a unified diff of the schemas of two branches; empty when they are the same.',
      input: {
        ...databaseInput,
        base: z.string().optional().describe('What it is compared with; its parent if left out'),
      },
      hints: reads,
    },
    ({ base, ...place }) => compare(tools, place, base),
  );
}

function addChanges(tools: Toolbox): void {
  tools.add(
    'create_branch',
    {
      title: 'Make a branch',
      description:
        'Makes a branch with a compute of its own: all data of its parent, as of now or of a moment of the past.',
      input: {
        name: z.string().min(1).optional().describe('Name; the id if left out'),
        parent: z
          .string()
          .optional()
          .describe('Id or name of the branch that it is made from; the default branch if left out'),
        at: z.string().optional().describe(`${moment} in the history of the parent`),
        schema_only: z.boolean().default(false).describe('Copy the schema, and no rows'),
        expires_at: z.string().optional().describe('When it is deleted by itself, at most 30 days ahead'),
      },
      hints: adds,
    },
    (given) => create(tools, given),
  );
  tools.add(
    'delete_branch',
    {
      title: 'Delete a branch',
      description: 'Deletes a branch with its data. It can be recovered for some days, but not with these tools.',
      input: { branch: branchName },
      hints: changes,
    },
    (place) => remove(tools, place),
  );
  tools.add(
    'restore_branch',
    {
      title: 'Restore a branch to a moment',
      description:
        'Replaces all data of a branch. What it held before is kept in another branch, which the answer names.',
      input: {
        branch: branchName,
        at: z.string().optional().describe(`${moment} in the history of the source; needed for its own past`),
        source: z.string().optional().describe('Id or name of the branch that the data is from; itself if left out'),
        preserve_under_name: z.string().optional().describe('Name of the branch that keeps what it held'),
      },
      hints: changes,
    },
    (given) => restore(tools, given),
  );
}

function addConnectionString(tools: Toolbox): void {
  tools.add(
    'get_connection_string',
    {
      title: 'Get a connection string',
      description: 'A connection string with its password, for programs. It is not bound by the limits of these tools.',
      input: { ...databaseInput, pooled: z.boolean().default(false).describe('Go through the pooler') },
      hints: reads,
    },
    async ({ pooled, ...place }) => {
      const where = { ...tools.inDatabase(place), pooled };
      const compute = await findCompute(tools.reach, undefined, where);
      return { uri: await connectionOf(tools.reach, compute, where) };
    },
  );
}

async function compare(tools: Toolbox, place: Place, base: string | undefined): Promise<object> {
  const target = await findBranch(tools.reach, tools.onBranch(place));
  const against = base === undefined ? undefined : (await branchOf(tools.reach, target.project, base)).branch.id;
  return tools.client.get<GetProjectBranchSchemaComparisonReply>(`${target.path}/compare_schema`, {
    db_name: place.database ?? (await oldestDatabase(tools, target)),
    base_branch_id: against,
  });
}

async function oldestDatabase({ client }: Toolbox, { path, branch }: BranchTarget): Promise<string> {
  const [oldest] = (await client.get<ListProjectBranchDatabasesReply>(`${path}/databases`)).databases;
  if (oldest === undefined) throw new CliFailure(`branch ${branch.name} has no database`);
  return oldest.name;
}

interface NewBranch extends Place {
  readonly name?: string | undefined;
  readonly parent?: string | undefined;
  readonly at?: string | undefined;
  readonly schema_only: boolean;
  readonly expires_at?: string | undefined;
}

async function create(tools: Toolbox, given: NewBranch): Promise<object> {
  const project = await findProject(tools.reach, tools.inProject(given));
  const parent = given.parent === undefined ? undefined : await branchOf(tools.reach, project, given.parent);
  const { lsn, timestamp } = momentOf(given.at);
  const made = await tools.client.post<CreateProjectBranchReply>(`${project.path}/branches`, {
    branch: {
      name: given.name,
      parent_id: parent?.branch.id,
      parent_lsn: lsn,
      parent_timestamp: timestamp,
      expires_at: given.expires_at,
      ...(given.schema_only && { init_source: 'schema-only' }),
    },
    endpoints: [{ type: 'read_write' }],
  });
  await untilDone(tools.client, made.operations);
  if (tools.key.scope === 'branches')
    await resetOwnersPasswords(tools.client, `${project.path}/branches/${made.branch.id}`);
  return { ...branchView(made.branch), state: 'ready', computes: made.endpoints.map(computeView) };
}

async function remove(tools: Toolbox, place: Place): Promise<object> {
  const { branch, path } = await findBranch(tools.reach, tools.onBranch(place));
  tools.requireChangeable(branch);
  const { operations } = await tools.client.delete<Partial<DeleteProjectBranchReply>>(path);
  await untilDone(tools.client, operations ?? []);
  return { deleted: { id: branch.id, name: branch.name } };
}

interface Restore extends Place {
  readonly at?: string | undefined;
  readonly source?: string | undefined;
  readonly preserve_under_name?: string | undefined;
}

async function restore(tools: Toolbox, given: Restore): Promise<object> {
  const { at, source } = given;
  if (at === undefined && source === undefined) throw new CliFailure('say what it is restored to: at, source, or both');
  const target = await findBranch(tools.reach, tools.onBranch(given));
  tools.requireChangeable(target.branch);
  const from = source === undefined ? target : await branchOf(tools.reach, target.project, source);
  const { lsn, timestamp } = momentOf(at);
  const kept = given.preserve_under_name ?? `${target.branch.name} before ${new Date().toISOString()}`;
  const { operations } = await tools.client.post<RestoreProjectBranchReply>(`${target.path}/restore`, {
    source_branch_id: from.branch.id,
    source_lsn: lsn,
    source_timestamp: timestamp,
    preserve_under_name: kept,
  });
  await untilDone(tools.client, operations);
  if (tools.key.scope === 'branches') await resetOwnersPasswords(tools.client, target.path);
  const { branch } = await tools.client.get<GetProjectBranchReply>(target.path);
  return { ...branchView(branch), kept_in: kept };
}
