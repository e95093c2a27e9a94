/**
 * Makes the project at the auth provider, its SDK keys and, at a provider elsewhere, the webhooks that report users.
 * The provider keeps what it made and never repeats an answer, so every answer is on record before the next call: a
 * project that no integration knows yet is a leftover, which is removed unless its integration takes it over.
 */
import { randomUUID } from 'node:crypto';
import { isProviderFailure, ProviderError } from '../auth-client/errors.ts';
import {
  adminKeySealContext,
  firstKeysSealContext,
  providerAccess,
  webhookSecretSealContext,
} from '../core/auth-integration.ts';
import { syncUsersBeforeRoute } from '../core/users-sync.ts';
import {
  type AuthIntegrationRow,
  deleteAuthIntegration,
  deleteLeftover,
  insertLeftovers,
  insertNewbornLeftover,
  selectAuthIntegration,
  updateAuthIntegration,
} from '../db/auth-integrations.ts';
import { selectReadWriteEndpoint } from '../db/endpoints.ts';
import { minuteMs } from '../lib/clock.ts';
import { abandon, done, goto, type Job, type Step, type StepContext, skip, type Write } from './step.ts';
import { findCompute, findProject } from './target.ts';

/** Longer than any step lasts, lost leases included. */
const newbornGraceMs = 10 * minuteMs;
const displayNameMax = 100;

async function findIntegration({ core, operation }: StepContext): Promise<AuthIntegrationRow | undefined> {
  const { integration } = operation.state;
  if (typeof integration !== 'string') return undefined;
  const row = await selectAuthIntegration(core.database.sql, integration);
  return row?.status === 'creating' ? row : undefined;
}

const projectOf = ({ core, providers }: StepContext, row: AuthIntegrationRow) => {
  const { providerProjectId, adminKey } = providerAccess({ ...core, sql: core.database.sql }, row);
  return providers.clientOf(row.providerUrl).project(providerProjectId, adminKey);
};

/** A project that was kept is taken up again, if it is still there. */
const resume: Step = async (context) => {
  const row = await findIntegration(context);
  if (row === undefined) return skip('the integration is gone');
  const provisionAnew = () => goto('provision', async () => ({ attempt: randomUUID() }));
  if (row.providerProjectId === null) return provisionAnew();
  try {
    await projectOf(context, row).check();
    return goto('keys');
  } catch (error) {
    if (!isProviderFailure(error, 'locked_out')) throw error;
    return provisionAnew();
  }
};

const provision: Step = async (context) => {
  const { core, operation, providers, log } = context;
  const row = await findIntegration(context);
  const project = await findProject(context);
  if (row === undefined || project === undefined) return skip('the integration is gone');
  const { attempt } = operation.state;
  // Shown at the provider; it names the owner if this process dies before the answer is on record.
  const displayName = `${project.name.slice(0, displayNameMax)} (${project.id})`;
  log.info({ attempt, displayName }, 'a project is made at the auth provider');
  return failFast(context, async () => {
    const made = await providers.clientOf(row.providerUrl).provision(displayName, String(attempt));
    const adminKey = core.box.seal(made.adminKey, adminKeySealContext(made.projectId));
    const record = { providerProjectId: made.projectId, providerUrl: row.providerUrl, adminKey };
    await insertNewbornLeftover(core.database.sql, record, newbornGraceMs);
    return goto('keys', async (tx) => {
      // The webhooks of a kept project that is gone are gone with it.
      const anew = { providerProjectId: made.projectId, adminKey, webhookSecret: null };
      await updateAuthIntegration(tx, row.id, anew);
      await deleteLeftover(tx, made.projectId);
      return { kept: false };
    });
  });
};

const keys: Step = async (context) => {
  const { core, operation } = context;
  const row = await findIntegration(context);
  if (row === undefined) return skip('the integration is gone');
  const description = `Catnap, SDK keys of ${operation.id}`;
  const project = projectOf(context, row);
  return failFast(context, async () => {
    await project.revokeKeys(description);
    const made = await project.createKeys(description);
    const firstKeys = core.box.seal(JSON.stringify(made), firstKeysSealContext(row.id));
    return goto('follow', async (tx) => {
      await updateAuthIntegration(tx, row.id, { firstKeys });
    });
  });
};

/** The embedded provider shares the system database with us; any other has to report its users. */
const follow: Step = async (context) => {
  const { core } = context;
  const row = await findIntegration(context);
  if (row === undefined) return skip('the integration is gone');
  const activate: Write = async (tx) => {
    await updateAuthIntegration(tx, row.id, { status: 'active' });
  };
  if (row.providerUrl === null || row.webhookSecret !== null) return goto('table', activate);
  return failFast(context, async () => {
    const url = `${core.config.publicUrl}/auth/webhooks/${row.id}`;
    const secret = await projectOf(context, row).addWebhook(url);
    const webhookSecret = core.box.seal(secret, webhookSecretSealContext(row.id));
    return goto('table', async (tx) => {
      await updateAuthIntegration(tx, row.id, { webhookSecret });
      return activate(tx);
    });
  });
};

/** An awake compute has the table when the reply is sent; a sleeping one creates it when it wakes. */
const table: Step = async (context) => {
  const { core, operation } = context;
  const compute = operation.branchId && (await selectReadWriteEndpoint(core.database.sql, operation.branchId));
  const target = compute ? await findCompute(context, compute.id) : undefined;
  if (target?.endpoint.currentState === 'active') await syncUsersBeforeRoute(context, target);
  return done();
};

/** A request that the provider refuses, it will refuse again; only one that it could not handle just now is retried. */
async function failFast({ log }: StepContext, work: () => ReturnType<Step>): ReturnType<Step> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    if (error.failure !== 'unreachable') return abandon(error.message);
    // Without its cause: the text that the operation ends with goes to the client that asked for it.
    log.warn({ err: error }, 'the auth provider does not answer');
    throw new Error(error.message);
  }
}

export const createAuthIntegration: Job = {
  steps: { resume, provision, keys, follow, table },
  /** Nothing half-made stays: what the provider has made by now is removed there, or kept as it was kept before. */
  giveUp: async (tx, { operation }) => {
    const { integration, kept } = operation.state;
    const row = typeof integration === 'string' ? await selectAuthIntegration(tx, integration) : undefined;
    if (row?.status !== 'creating') return;
    if (kept === true) {
      await updateAuthIntegration(tx, row.id, { status: 'detached', firstKeys: null });
      return;
    }
    await insertLeftovers(tx, { projectId: row.projectId, id: row.id });
    await deleteAuthIntegration(tx, row.id);
  },
};
