/** Auth integrations (beta): made, listed, given new keys, handed over, deleted; by project and by branch. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isProviderFailure } from '../../auth-client/errors.ts';
import type { Caller } from '../../core/access.ts';
import {
  beginIntegration,
  finishIntegration,
  type IntegrationAddress,
  type IntegrationInput,
  listIntegrations,
  recordTransferred,
  recordTransferStarted,
  removeIntegration,
  requireIntegration,
} from '../../core/auth-integration.ts';
import { runCommand } from '../../core/command.ts';
import { CatnapError, notFound } from '../../lib/errors.ts';
import { asBranchId, asProjectId } from '../../lib/ids.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import {
  AuthCreateBody,
  AuthDeleteBody,
  AuthIntegration,
  AuthIntegrationsReply,
  AuthKeysReply,
  AuthProjectBody,
  BranchAuthCreateBody,
  IntegrationParams,
  nothing,
  TransferReply,
} from '../schemas/auth.ts';
import { BranchParams, ProjectParams, ref } from '../schemas/common.ts';
import { errorReply } from '../schemas/error.ts';
import { integrationView, keysView } from '../views/auth.ts';
import { branchAddress, projectAddress } from '../views/params.ts';
import { ask, write, writeOutside } from './command.ts';
import { openIntegration } from './provider-project.ts';

const tags = ['Auth (beta)'];
const ofBranch = '/projects/:project_id/branches/:branch_id/auth';

export function authIntegrationRoutes(app: App, parts: ApiParts): void {
  createRoutes(app, parts);
  readRoutes(app, parts);
  deleteRoutes(app, parts);

  const keys = {
    tags,
    operationId: 'createNeonAuthProviderSDKKeys',
    summary: 'Make new SDK keys (beta)',
    description: 'A fresh pair each time; the ones before stay good.',
    body: AuthProjectBody,
    response: { 201: AuthKeysReply, ...errorReply },
  };
  app.post('/projects/auth/keys', { schema: keys }, (request, reply) => {
    reply.status(201);
    return writeOutside(parts, request, async (scope, caller) => {
      const address = { projectId: asProjectId(request.body.project_id) };
      const { integration, project } = await openIntegration(parts, scope, caller, address);
      return keysView(parts.providers, integration, await project.createKeys('Catnap, SDK keys made on request'));
    });
  });

  const transfer = {
    tags,
    operationId: 'transferNeonAuthProviderProject',
    summary: 'Hand the provider’s project over (beta)',
    description:
      'Answers with a page on which to choose the account that receives it. Keys and the copying of users stay as ' +
      'they are. It can be handed over once.',
    body: AuthProjectBody,
    response: { 200: TransferReply, ...errorReply },
  };
  app.post('/projects/auth/transfer_ownership', { schema: transfer }, (request) =>
    writeOutside(parts, request, (_scope, caller) =>
      startTransfer(parts, caller, { projectId: asProjectId(request.body.project_id) }),
    ),
  );
}

async function startTransfer(parts: ApiParts, caller: Caller, address: IntegrationAddress): Promise<{ url: string }> {
  const { core, providers } = parts;
  const scope = { ...core, sql: core.database.sql };
  const { id, providerProjectId, providerUrl, ownedBy } = await requireIntegration(scope, caller, address);
  const done = () => new CatnapError('conflict', 'the project at the auth provider has been handed over already');
  if (ownedBy === 'user' || providerProjectId === null) throw done();
  try {
    const url = await providers.clientOf(providerUrl).startTransfer(providerProjectId);
    await runCommand(core, null, async (command) => {
      await recordTransferStarted(command, id);
      return {};
    });
    return { url };
  } catch (error) {
    // A project is handed over only once; the provider then refuses every further request.
    if (!isProviderFailure(error, 'refused')) throw error;
    await recordTransferred(scope, id);
    throw done();
  }
}

function createRoutes(app: App, parts: ApiParts): void {
  const create = {
    tags,
    operationId: 'createNeonAuthIntegration',
    summary: 'Create an auth integration (beta)',
    description:
      'Makes a project at the auth provider and the table `neon_auth.users_sync`. Users are copied there within a ' +
      'second, or before the first query of a compute that sleeps.',
    body: AuthCreateBody,
    response: { 201: AuthKeysReply, ...errorReply },
  };
  app.post('/projects/auth/create', { schema: create }, (request, reply) => {
    const { project_id, branch_id, database_name, role_name } = request.body;
    return makeIntegration(parts, request, reply, {
      projectId: asProjectId(project_id),
      branchId: asBranchId(branch_id),
      databaseName: database_name ?? null,
      roleName: role_name ?? null,
      providerUrl: parts.providers.current,
    });
  });

  const enable = {
    tags,
    operationId: 'createNeonAuth',
    summary: 'Create the auth integration of a branch (beta)',
    description: 'The branch must be the default one.',
    params: BranchParams,
    body: BranchAuthCreateBody,
    response: { 201: AuthKeysReply, ...errorReply },
  };
  app.post(ofBranch, { schema: enable }, (request, reply) =>
    makeIntegration(parts, request, reply, {
      ...branchAddress(request.params),
      databaseName: request.body.database_name ?? null,
      roleName: null,
      providerUrl: parts.providers.current,
    }),
  );
}

/** Begun in one transaction, made by the worker, handed out in another: `finishIntegration` gives the keys out once. */
function makeIntegration(parts: ApiParts, request: FastifyRequest, reply: FastifyReply, input: IntegrationInput) {
  reply.status(201);
  return writeOutside(parts, request, async (_scope, caller) => {
    const begun = await runCommand(parts.core, null, (scope) => beginIntegration(scope, caller, input));
    const end = await parts.awaitOperation(begun.operationId);
    if (end.status === 'error') {
      throw new CatnapError('provider_failed', `the auth integration was not made: ${end.error}`);
    }
    return runCommand(parts.core, null, async (scope) => {
      const { integration, keys } = await finishIntegration(scope, begun.integrationId);
      return keysView(parts.providers, integration, keys);
    });
  });
}

function readRoutes(app: App, parts: ApiParts): void {
  const list = {
    tags,
    operationId: 'listNeonAuthIntegrations',
    summary: 'List auth integrations (beta)',
    description: 'A project has one at most.',
    params: ProjectParams,
    response: { 200: AuthIntegrationsReply, ...errorReply },
  };
  app.get('/projects/:project_id/auth/integrations', { schema: list }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const rows = await listIntegrations(scope, caller, asProjectId(request.params.project_id));
      return { data: rows.map((row) => integrationView(parts.providers, row)) };
    }),
  );

  const get = {
    tags,
    operationId: 'getNeonAuth',
    summary: 'Get the auth integration of a branch (beta)',
    description: 'Not found when the branch has none.',
    params: BranchParams,
    response: { 200: ref(AuthIntegration), ...errorReply },
  };
  app.get(ofBranch, { schema: get }, (request) =>
    ask(parts, request, async (scope, caller) =>
      integrationView(parts.providers, await requireIntegration(scope, caller, branchAddress(request.params))),
    ),
  );
}

function deleteRoutes(app: App, parts: ApiParts): void {
  const remove = {
    tags,
    operationId: 'deleteNeonAuthIntegration',
    summary: 'Delete an auth integration (beta)',
    description:
      'Users are copied no more. Without `delete_data` the table stays as it is, and so does the project at the ' +
      'provider: an integration made later takes it up again.',
    params: IntegrationParams,
    body: AuthDeleteBody,
    response: { 200: nothing, ...errorReply },
  };
  app.delete('/projects/:project_id/auth/integration/:auth_provider', { schema: remove }, async (request, reply) => {
    await write(parts, request, async (scope, caller) => {
      const address = projectAddress(request.params);
      if (request.params.auth_provider !== 'stack') {
        await requireIntegration(scope, caller, address);
        throw notFound('auth integration of this auth_provider');
      }
      await removeIntegration(scope, caller, address, request.body.delete_data ?? false);
      return {};
    });
    return reply.status(200).send();
  });

  const disable = {
    tags,
    operationId: 'disableNeonAuth',
    summary: 'Delete the auth integration of a branch (beta)',
    description: 'As deleting the integration of the project.',
    params: BranchParams,
    body: AuthDeleteBody,
    response: { 200: nothing, ...errorReply },
  };
  app.delete(ofBranch, { schema: disable }, async (request, reply) => {
    await write(parts, request, async (scope, caller) => {
      await removeIntegration(scope, caller, branchAddress(request.params), request.body.delete_data ?? false);
      return {};
    });
    return reply.status(200).send();
  });
}
