/** What is in a branch: its schema, and restoring it to another state. */
import { restoreBranch } from '../../core/branch-restore.ts';
import { baseOf, findSchemaSource } from '../../core/branch-schema.ts';
import { CatnapError } from '../../lib/errors.ts';
import { asBranchId } from '../../lib/ids.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import {
  BranchOperationsReply,
  BranchRestoreBody,
  BranchSchemaQuery,
  BranchSchemaReply,
  SchemaComparisonQuery,
  SchemaComparisonReply,
} from '../schemas/branch.ts';
import { BranchParams } from '../schemas/common.ts';
import { errorReply } from '../schemas/error.ts';
import { branchView, restoreInput } from '../views/branch.ts';
import { operationViews } from '../views/operation.ts';
import { branchAddress } from '../views/params.ts';
import { ask, write } from './command.ts';
import { unifiedDiff } from './unified-diff.ts';

const tags = ['Branches'];
const member = '/projects/:project_id/branches/:branch_id';

export function branchContentRoutes(app: App, parts: ApiParts): void {
  schemaRoutes(app, parts);

  const restore = {
    tags,
    operationId: 'restoreProjectBranch',
    summary: 'Restore a branch',
    description:
      'Its data, roles and databases become those of the source, at its head or at a moment of the past. It keeps its id, name and computes; connections drop briefly.',
    params: BranchParams,
    body: BranchRestoreBody,
    response: { 200: BranchOperationsReply, ...errorReply },
  };
  app.post(`${member}/restore`, { schema: restore }, (request) =>
    write(parts, request, async (scope, caller) => {
      const input = restoreInput(branchAddress(request.params), request.body);
      const { branch, operations } = await restoreBranch(scope, caller, input);
      return { branch: branchView(branch), operations: operationViews(operations) };
    }),
  );
}

function schemaRoutes(app: App, parts: ApiParts): void {
  const schema = {
    tags,
    operationId: 'getProjectBranchSchema',
    summary: 'Get the schema of a database',
    description: 'As SQL text, from the head of the branch. A sleeping compute is woken for it.',
    params: BranchParams,
    querystring: BranchSchemaQuery,
    response: { 200: BranchSchemaReply, ...errorReply },
  };
  app.get(`${member}/schema`, { schema }, async (request) => {
    requireHead(request.query);
    const source = await ask(parts, request, (scope, caller) =>
      findSchemaSource(scope, caller, branchAddress(request.params), request.query.db_name),
    );
    return { sql: await parts.dumpSchema(source) };
  });

  const compare = {
    tags,
    operationId: 'getProjectBranchSchemaComparison',
    summary: 'Compare the schema with that of another branch',
    description: 'A unified diff of the same database in both; the parent is the other branch unless one is named.',
    params: BranchParams,
    querystring: SchemaComparisonQuery,
    response: { 200: SchemaComparisonReply, ...errorReply },
  };
  app.get(`${member}/compare_schema`, { schema: compare }, async (request) => {
    const { base_branch_id: baseId, db_name: database } = request.query;
    requireHead(request.query);
    const address = branchAddress(request.params);
    const [base, branch] = await ask(parts, request, async (scope, caller) => {
      const other = await baseOf(scope, caller, address, baseId === undefined ? null : asBranchId(baseId));
      return [
        await findSchemaSource(scope, caller, other, database),
        await findSchemaSource(scope, caller, address, database),
      ] as const;
    });
    const before = { name: base.branchName, text: await parts.dumpSchema(base) };
    return { diff: unifiedDiff(before, { name: branch.branchName, text: await parts.dumpSchema(branch) }) };
  });
}

function requireHead(query: Readonly<Record<string, unknown>>): void {
  const past = ['lsn', 'timestamp', 'base_lsn', 'base_timestamp'].filter((name) => query[name] !== undefined);
  if (past.length === 0) return;
  const message = `the schema of a point in the past comes with a later version: leave ${past.join(' and ')} out`;
  throw new CatnapError('unprocessable', message);
}
