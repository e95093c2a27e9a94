/** What is in a branch: its schema, its history, and restoring it to another state. */
import type { FastifyRequest } from 'fastify';
import { restoreBranch } from '../../core/branch-restore.ts';
import { type Address, baseOf, findSchemaSource } from '../../core/branch-schema.ts';
import { getBranchHistory, isMomentGiven } from '../../core/moments.ts';
import { requestPastSchema, takePastSchema } from '../../core/past-schema.ts';
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
import { BranchHistoryReply } from '../schemas/history.ts';
import { branchView, restoreInput } from '../views/branch.ts';
import { historyView } from '../views/history.ts';
import { operationViews } from '../views/operation.ts';
import { branchAddress } from '../views/params.ts';
import { ask, write } from './command.ts';
import { unifiedDiff } from './unified-diff.ts';

const tags = ['Branches'];
const member = '/projects/:project_id/branches/:branch_id';

export function branchContentRoutes(app: App, parts: ApiParts): void {
  schemaRoutes(app, parts);

  const history = {
    tags,
    operationId: 'getProjectBranchHistory',
    summary: 'Get what is kept of a branch’s past',
    description: 'The moments that it can be branched from or restored to, and what keeping them takes.',
    params: BranchParams,
    response: { 200: BranchHistoryReply, ...errorReply },
  };
  app.get(`${member}/history`, { schema: history }, async (request) => ({
    history: historyView(
      await ask(parts, request, (scope, caller) => getBranchHistory(scope, caller, branchAddress(request.params))),
    ),
  }));

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
      return { branch: branchView(branch, parts.clock.now()), operations: operationViews(operations) };
    }),
  );
}

function schemaRoutes(app: App, parts: ApiParts): void {
  const schema = {
    tags,
    operationId: 'getProjectBranchSchema',
    summary: 'Get the schema of a database',
    description:
      'As SQL text, from the head of the branch, for which a sleeping compute is woken, or from a moment of the past.',
    params: BranchParams,
    querystring: BranchSchemaQuery,
    response: { 200: BranchSchemaReply, ...errorReply },
  };
  app.get(`${member}/schema`, { schema }, async (request) => {
    const { db_name: database, lsn, timestamp } = request.query;
    const read = await findSchema(parts, request, branchAddress(request.params), {
      database,
      moment: { lsn, timestamp },
      fields: { lsn: 'query.lsn', timestamp: 'query.timestamp' },
    });
    return { sql: (await read()).text };
  });

  const compare = {
    tags,
    operationId: 'getProjectBranchSchemaComparison',
    summary: 'Compare the schema with that of another branch',
    description:
      'A unified diff of the same database in both, each at its head or at a moment of the past; the parent is the other branch unless one is named.',
    params: BranchParams,
    querystring: SchemaComparisonQuery,
    response: { 200: SchemaComparisonReply, ...errorReply },
  };
  app.get(`${member}/compare_schema`, { schema: compare }, async (request) => {
    const { base_branch_id: baseId, db_name: database, lsn, timestamp, base_lsn, base_timestamp } = request.query;
    const address = branchAddress(request.params);
    const base = await ask(parts, request, (scope, caller) =>
      baseOf(scope, caller, address, baseId === undefined ? null : asBranchId(baseId)),
    );
    const readBase = await findSchema(parts, request, base, {
      database,
      moment: { lsn: base_lsn, timestamp: base_timestamp },
      fields: { lsn: 'query.base_lsn', timestamp: 'query.base_timestamp' },
    });
    const read = await findSchema(parts, request, address, {
      database,
      moment: { lsn, timestamp },
      fields: { lsn: 'query.lsn', timestamp: 'query.timestamp' },
    });
    const before = await readBase();
    return { diff: unifiedDiff(before, await read()) };
  });
}

/** Everything that can be refused is refused before anything is read. */
async function findSchema(
  parts: ApiParts,
  request: FastifyRequest,
  address: Address,
  of: Parameters<typeof requestPastSchema>[3],
): Promise<() => Promise<{ readonly name: string; readonly text: string }>> {
  if (!isMomentGiven(of.moment)) {
    const source = await ask(parts, request, (scope, caller) => findSchemaSource(scope, caller, address, of.database));
    return async () => ({ name: source.branchName, text: await parts.dumpSchema(source) });
  }
  const { operationId, title } = await write(parts, request, (scope, caller) =>
    requestPastSchema(scope, caller, address, of),
  );
  return async () => {
    const end = await parts.awaitOperation(operationId);
    return { name: title, text: await takePastSchema(parts.core, operationId, end) };
  };
}
