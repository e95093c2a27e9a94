/** Tools that list and describe: projects, branches, tables. None of them changes anything. */
import { z } from 'zod';
import { CliFailure } from '../kit/failure.ts';
import type {
  Branch,
  Endpoint,
  GetProjectBranchHistoryReply,
  GetProjectReply,
  ListProjectBranchDatabasesReply,
  ListProjectBranchesReply,
  ListProjectBranchRolesReply,
  ListProjectEndpointsReply,
} from '../kit/generated.ts';
import type { SqlResult } from '../kit/run-sql.ts';
import { findBranch, findProject } from '../kit/targets.ts';
import { mayReadAll, mayRunSql } from './key.ts';
import { query } from './sql-tools.ts';
import { branchInput, databaseInput, type Place, reads, type Toolbox } from './toolbox.ts';

export function addDescribeTools(tools: Toolbox): void {
  tools.add(
    'list_projects',
    { title: 'List projects', description: 'Projects that this server reaches.', input: {}, hints: reads },
    () => listProjects(tools),
  );
  tools.add(
    'describe_project',
    {
      title: 'Describe a project',
      description: 'A project with its branches and computes.',
      input: {},
      hints: reads,
    },
    (place) => describeProject(tools, place),
  );
  tools.add(
    'describe_branch',
    {
      title: 'Describe a branch',
      description: 'A branch with its computes, databases and roles, and the past that it can be restored to.',
      input: branchInput,
      hints: reads,
    },
    (place) => describeBranch(tools, place),
  );
  if (mayRunSql(tools.key)) addTableTools(tools);
}

function addTableTools(tools: Toolbox): void {
  tools.add(
    'list_tables',
    {
      title: 'List tables',
      description: 'Tables and views of a database, with estimated row counts and sizes.',
      input: databaseInput,
      hints: reads,
    },
    async (place) => ({ tables: objectsOf(await query(tools, place, [{ query: tablesSql, maxRows: tablesMax }])) }),
  );
  tools.add(
    'describe_table',
    {
      title: 'Describe a table',
      description: 'Columns, constraints and indexes of a table or view.',
      input: { table: z.string().min(1).describe('Its name, with its schema if that is not public'), ...databaseInput },
      hints: reads,
    },
    ({ table, ...place }) => describeTable(tools, table, place),
  );
}

async function listProjects(tools: Toolbox): Promise<object> {
  // A key of one project, and a server that is bound to one, have nothing to list.
  const bound = tools.inProject({});
  if (bound.project !== undefined) return { projects: [await readProject(tools, bound)] };
  return {
    projects: (await tools.client.listProjects()).map(({ id, name, pg_version }) => ({ id, name, pg_version })),
  };
}

async function readProject(tools: Toolbox, place: Place) {
  const { path } = await findProject(tools.reach, tools.inProject(place));
  const { id, name, pg_version } = (await tools.client.get<GetProjectReply>(path)).project;
  return { id, name, pg_version };
}

async function describeProject(tools: Toolbox, place: Place): Promise<object> {
  const { path } = await findProject(tools.reach, tools.inProject(place));
  const { branches } = await tools.client.get<ListProjectBranchesReply>(`${path}/branches`);
  const { endpoints } = await tools.client.get<ListProjectEndpointsReply>(`${path}/endpoints`);
  const project = await readProject(tools, place);
  return { ...project, branches: branches.map(branchView), computes: endpoints.map(computeView) };
}

async function describeBranch(tools: Toolbox, place: Place): Promise<object> {
  const { branch, path } = await findBranch(tools.reach, tools.onBranch(place));
  const { client } = tools;
  const { endpoints } = await client.get<ListProjectEndpointsReply>(`${path}/endpoints`);
  const { databases } = await client.get<ListProjectBranchDatabasesReply>(`${path}/databases`);
  const { roles } = await client.get<ListProjectBranchRolesReply>(`${path}/roles`);
  const past = mayReadAll(tools.key) ? await client.find<GetProjectBranchHistoryReply>(`${path}/history`) : null;
  return {
    ...branchView(branch),
    computes: endpoints.map(computeView),
    databases: databases.map(({ name, owner_name: owner }) => ({ name, owner })),
    roles: roles.map(({ name }) => name),
    history: past?.history,
  };
}

export function branchView(branch: Branch) {
  const { id, name, current_state: state, parent_id: parent, logical_size: bytes, created_at, expires_at } = branch;
  return {
    id,
    name,
    default: branch.default,
    protected: branch.protected,
    state,
    parent,
    bytes,
    created_at,
    expires_at,
  };
}

export function computeView({ id, branch_id, type, current_state: state, host, why_awake }: Endpoint) {
  return { id, branch_id, type, state, host, why_awake: why_awake?.description };
}

const tablesMax = 1_000;
const tablesSql = `
  SELECT n.nspname AS schema, c.relname AS name,
    CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view'
      WHEN 'm' THEN 'materialized view' ELSE 'foreign table' END AS kind,
    CASE WHEN c.reltuples >= 0 THEN c.reltuples::bigint END AS estimated_rows,
    pg_total_relation_size(c.oid) AS bytes, obj_description(c.oid, 'pg_class') AS comment
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
    AND has_schema_privilege(n.oid, 'USAGE')
  ORDER BY 1, 2`;

const columnsSql = `
  SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, NOT a.attnotnull AS nullable,
    pg_get_expr(d.adbin, d.adrelid) AS default, col_description(a.attrelid, a.attnum) AS comment
  FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`;
const constraintsSql = `
  SELECT conname AS name, pg_get_constraintdef(oid) AS definition
  FROM pg_constraint WHERE conrelid = to_regclass($1) ORDER BY 1`;
const indexesSql = `
  SELECT c.relname AS name, pg_get_indexdef(i.indexrelid) AS definition
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = to_regclass($1) ORDER BY 1`;

async function describeTable(tools: Toolbox, table: string, place: Place): Promise<object> {
  const params = [table];
  const statements = [columnsSql, constraintsSql, indexesSql].map((text) => ({ query: text, params }));
  const [columns, constraints, indexes] = await query(tools, place, statements);
  if (columns === undefined || columns.rows.length === 0) {
    throw new CliFailure(`there is no table or view ${table}: list_tables names what there is`);
  }
  return {
    table,
    columns: objectsOf([columns]),
    constraints: constraints && objectsOf([constraints]),
    indexes: indexes && objectsOf([indexes]),
  };
}

function objectsOf([result]: readonly SqlResult[]): object[] {
  const { fields = [], rows = [] } = result ?? {};
  return rows.map((row) => Object.fromEntries(fields.map(({ name }, at) => [name, row[at]])));
}
