/**
 * Opens and removes a look into the past. The moment is recovered like that of a branch; a first start on it gives the
 * roles their passwords of now, and makes the server's limits those of the second one, which serves the data frozen.
 */
import { NoSuchMomentError } from '../compute/interface/driver.ts';
import { routeTo } from '../core/connection.ts';
import { commandScope } from '../core/context.ts';
import { queueLookClosing } from '../core/look.ts';
import { defaultSize, limitsAt, serverSettings, temporaryDiskLimit } from '../core/sizing.ts';
import { deleteLook, selectLook, touchLook, updateLook } from '../db/looks.ts';
import { asEndpointId } from '../lib/ids.ts';
import { pastOf } from './copy-source.ts';
import {
  abandonIfHopeless,
  done,
  goto,
  type Job,
  nothingToUndo,
  type Step,
  type StepContext,
  StepFailure,
  skip,
  wait,
} from './step.ts';
import { adminSecretOf, findProject, tenantRef } from './target.ts';

const probeMs = 20;
/** Nothing of a look is started again after it is open, so its two starts are all the generations there are. */
const [preparing, frozen] = [1, 2];

const gone = skip('the look is gone');
const settings = serverSettings(defaultSize);

async function findLook(context: StepContext) {
  const { core, operation } = context;
  const id = asEndpointId(String(operation.state.look));
  const [project, look] = await Promise.all([findProject(context), selectLook(core.database.sql, id)]);
  if (project === undefined || look === undefined) return undefined;
  const ref = { ...tenantRef(project), branchId: look.dataId, endpointId: id };
  const { pgVersion } = project;
  return { look, ref, spec: { ...ref, pgVersion, adminSecret: adminSecretOf(context, project) } };
}

type Found = NonNullable<Awaited<ReturnType<typeof findLook>>>;

const copy: Step = async (context) => {
  const found = await findLook(context);
  const past = pastOf(context);
  if (found === undefined || past === null) return gone;
  const { spec, look } = found;
  return abandonIfHopeless(async () => {
    try {
      const { adminSecret } = spec;
      await context.driver.createBranch({ ...spec, source: { kind: 'history', ...past, adminSecret } });
    } catch (error) {
      if (!(error instanceof NoSuchMomentError)) throw error;
      const { message: refusal } = error;
      return done(async (tx) => {
        await updateLook(tx, look.id, { state: 'refused', refusal });
      });
    }
    return goto('prepare');
  });
};

async function start({ core, driver }: StepContext, { spec }: Found, generation: number): Promise<void> {
  await driver.start({
    ...spec,
    generation,
    settings,
    limits: limitsAt(defaultSize.minCu, defaultSize, settings, {}),
    tempDiskBytes: temporaryDiskLimit(core.config, defaultSize),
    frozen: generation === frozen,
  });
}

const prepare: Step = async (context) => {
  const found = await findLook(context);
  if (found === undefined) return gone;
  await start(context, found, preparing);
  return goto('set_passwords');
};

const setPasswords: Step = async (context) => {
  const found = await findLook(context);
  if (found === undefined) return gone;
  const { driver } = context;
  const { ref, look } = found;
  const { state, address } = await driver.observe(ref);
  if (state === 'absent') throw new StepFailure('the server ended before its passwords were set', 'prepare');
  if (address === null) return wait(probeMs);
  const { roles } = await driver.readCatalog(ref);
  const changed = roles.flatMap(({ name, verifier }) => {
    const current = Object.hasOwn(look.logins, name) ? look.logins[name] : undefined;
    return current === undefined || current === verifier ? [] : [{ name, verifier: current }];
  });
  if (changed.length > 0) {
    await driver.configure(ref, { roles: changed, databases: [], dropDatabases: [], dropRoles: [] });
  }
  return goto('stop', async (tx) => {
    await updateLook(tx, look.id, { roleNames: roles.map(({ name }) => name) });
  });
};

const stop: Step = async (context) => {
  const found = await findLook(context);
  if (found === undefined) return gone;
  await context.driver.suspend(found.ref, preparing);
  // With a write, so that it holds: after the second start, another stop of the first one would be refused as stale.
  return goto('freeze', async () => undefined);
};

const freeze: Step = async (context) => {
  const found = await findLook(context);
  if (found === undefined) return gone;
  await start(context, found, frozen);
  return goto('open_route');
};

const openRoute: Step = async (context) => {
  const found = await findLook(context);
  if (found === undefined) return gone;
  const { look, ref } = found;
  const { state, address } = await context.driver.observe(ref);
  if (state === 'absent') throw new StepFailure('the server ended before its route was open', 'freeze');
  if (address === null) return wait(probeMs);
  const route = routeTo(address, settings);
  return done(async (tx) => {
    await updateLook(tx, look.id, { state: 'open', route });
    await touchLook(tx, look.id, context.core.clock.now());
  });
};

export const openLook: Job = {
  steps: { copy, prepare, set_passwords: setPasswords, stop, freeze, open_route: openRoute },
  giveUp: async (tx, { operation, core }) => {
    const { projectId, branchId, state } = operation;
    if (branchId === null) return;
    await queueLookClosing(commandScope(core, tx), { id: asEndpointId(String(state.look)), projectId, branchId });
  },
};

const remove: Step = async (context) => {
  const found = await findLook(context);
  if (found === undefined) return gone;
  await context.driver.removeCompute(found.ref);
  await context.driver.removeBranch(found.ref);
  return done(async (tx) => {
    await deleteLook(tx, found.look.id);
  });
};

export const closeLook: Job = { steps: { remove }, giveUp: nothingToUndo };
