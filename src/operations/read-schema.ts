/**
 * Reads the schema of a database at a moment of the past: recovers that moment into a scratch branch, starts a server
 * on it that nobody else knows, dumps, and removes both. What was read stays on record until it is fetched.
 */
import { NoSuchMomentError } from '../compute/interface/driver.ts';
import { commandScope } from '../core/context.ts';
import { enqueue } from '../core/operation.ts';
import { defaultSize, limitsAt, serverSettings, temporaryDiskLimit } from '../core/sizing.ts';
import { insertSchemaRead, type SchemaResult } from '../db/schema-reads.ts';
import { asBranchId, asEndpointId } from '../lib/ids.ts';
import { pastOf } from './copy-source.ts';
import {
  abandonIfHopeless,
  done,
  goto,
  type Job,
  type Step,
  type StepContext,
  StepFailure,
  skip,
  type Write,
  wait,
} from './step.ts';
import { adminSecretOf, findProject, tenantRef } from './target.ts';

const probeMs = 20;

async function findScratch(context: StepContext) {
  const project = await findProject(context);
  if (project === undefined) return undefined;
  const { pgVersion } = project;
  const ref = { ...tenantRef(project), ...scratchOf(context) };
  return { project, ref, spec: { ...ref, pgVersion, adminSecret: adminSecretOf(context, project) } };
}

/** Names that only the driver ever sees. */
function scratchOf({ operation }: StepContext) {
  const { staging, endpoint } = operation.state;
  return { branchId: asBranchId(String(staging)), endpointId: asEndpointId(String(endpoint)) };
}

/** The request that waits takes it from there. */
function keep({ operation }: StepContext, result: SchemaResult): Write {
  const { id: operationId, projectId, state } = operation;
  const wanted = { past: state.past ?? null, database: state.database ?? null };
  return async (tx) => {
    await insertSchemaRead(tx, { operationId, projectId, wanted }, result);
  };
}

const copy: Step = async (context) => {
  const found = await findScratch(context);
  const past = pastOf(context);
  if (found === undefined || past === null) return skip('the project is gone');
  const { spec, project } = found;
  return abandonIfHopeless(async () => {
    try {
      await context.driver.createBranch({
        ...spec,
        source: { kind: 'history', ...past, adminSecret: spec.adminSecret },
      });
    } catch (error) {
      if (!(error instanceof NoSuchMomentError)) throw error;
      return goto('remove', keep(context, { refused: error.message }));
    }
    if (project.settings.enable_logical_replication) await context.driver.detachBranch(spec);
    return goto('start');
  });
};

const start: Step = async (context) => {
  const found = await findScratch(context);
  if (found === undefined) return skip('the project is gone');
  const settings = serverSettings(defaultSize);
  await context.driver.start({
    ...found.spec,
    generation: 1,
    settings,
    limits: limitsAt(defaultSize.minCu, defaultSize, settings, {}),
    tempDiskBytes: temporaryDiskLimit(context.core.config, defaultSize),
  });
  return goto('dump');
};

const dump: Step = async (context) => {
  const found = await findScratch(context);
  if (found === undefined) return skip('the project is gone');
  const { address, state } = await context.driver.observe(found.ref);
  if (state === 'absent') throw new StepFailure('the server ended before its schema was read', 'start');
  if (address === null) return wait(probeMs);
  const database = String(context.operation.state.database);
  const { databases } = await context.driver.readCatalog(found.ref);
  if (!databases.some(({ name }) => name === database)) return goto('remove', keep(context, { missing: true }));
  const { pgVersion, adminSecret } = found.spec;
  const sql = await context.dumpSchema(address, { pgVersion, database, adminSecret });
  return goto('remove', keep(context, { sql }));
};

const remove: Step = async (context) => {
  const found = await findScratch(context);
  if (found === undefined) return skip('the project is gone');
  await context.driver.removeCompute(found.ref);
  await context.driver.removeBranch(found.ref);
  return done();
};

export const readSchema: Job = {
  steps: { copy, start, dump, remove },
  giveUp: async (tx, context) => {
    const { operation, core } = context;
    const { staging = null, endpoint = null } = operation.state;
    await enqueue(commandScope(core, tx), 'discard_copy', {
      projectId: operation.projectId,
      state: { staging, endpoint },
    });
  },
};
