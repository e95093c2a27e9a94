/** Trusted domains and OAuth providers of an auth integration (beta); the provider keeps them. */

import type { ProviderProject } from '../../auth-client/client.ts';
import { isProviderFailure } from '../../auth-client/errors.ts';
import { providerIdsOf } from '../../auth-provider/third-party/identity-providers.ts';
import type { AuthIntegration, IntegrationAddress } from '../../core/auth-integration.ts';
import { requireDomain, requireOwnCredentials } from '../../core/auth-rules.ts';
import { CatnapError, invalid, notFound } from '../../lib/errors.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import {
  BranchOauthParams,
  DomainAddBody,
  DomainsDeleteBody,
  DomainsReply,
  nothing,
  OauthAddBody,
  OauthParams,
  OauthProvider,
  OauthProvidersReply,
  OauthUpdateBody,
} from '../schemas/auth.ts';
import { BranchParams, ProjectParams } from '../schemas/common.ts';
import { errorReply } from '../schemas/error.ts';
import { oauthView, oauthViews } from '../views/auth.ts';
import { branchAddress, projectAddress } from '../views/params.ts';
import { writeOutside } from './command.ts';
import { openIntegration } from './provider-project.ts';

const tags = ['Auth (beta)'];

/** Every one of these exists for the project and for the branch that the integration is on. */
const forms = [
  {
    path: '/projects/:project_id/auth',
    params: ProjectParams,
    memberParams: OauthParams,
    ids: {
      listDomains: { operationId: 'listNeonAuthRedirectURIWhitelistDomains' },
      addDomain: { operationId: 'addNeonAuthDomainToRedirectURIWhitelist' },
      removeDomains: { operationId: 'deleteNeonAuthDomainFromRedirectURIWhitelist' },
      listOauth: { operationId: 'listNeonAuthOauthProviders' },
      addOauth: { operationId: 'addNeonAuthOauthProvider' },
      updateOauth: { operationId: 'updateNeonAuthOauthProvider' },
      removeOauth: { operationId: 'deleteNeonAuthOauthProvider' },
    },
  },
  {
    path: '/projects/:project_id/branches/:branch_id/auth',
    params: BranchParams,
    memberParams: BranchOauthParams,
    ids: {
      listDomains: { operationId: 'listBranchNeonAuthTrustedDomains' },
      addDomain: { operationId: 'addBranchNeonAuthTrustedDomain' },
      removeDomains: { operationId: 'deleteBranchNeonAuthTrustedDomain' },
      listOauth: { operationId: 'listBranchNeonAuthOauthProviders' },
      addOauth: { operationId: 'addBranchNeonAuthOauthProvider' },
      updateOauth: { operationId: 'updateBranchNeonAuthOauthProvider' },
      removeOauth: { operationId: 'deleteBranchNeonAuthOauthProvider' },
    },
  },
] as const;

type Form = (typeof forms)[number];
type Request = Parameters<typeof writeOutside>[1];

export function authSettingsRoutes(app: App, parts: ApiParts): void {
  for (const form of forms) {
    domainRoutes(app, parts, form);
    oauthRoutes(app, parts, form);
  }
}

function addressOf(params: { project_id: string; branch_id?: string }): IntegrationAddress {
  const { project_id, branch_id } = params;
  return branch_id === undefined ? projectAddress({ project_id }) : branchAddress({ project_id, branch_id });
}

function atProvider<T extends object>(
  parts: ApiParts,
  request: Request & { params: { project_id: string; branch_id?: string } },
  work: (project: ProviderProject, integration: AuthIntegration) => Promise<T>,
): Promise<T> {
  return writeOutside(parts, request, async (scope, caller) => {
    const { project, integration } = await openIntegration(parts, scope, caller, addressOf(request.params));
    return work(project, integration);
  });
}

function domainRoutes(app: App, parts: ApiParts, { path, params, ids }: Form): void {
  const list = {
    tags,
    ...ids.listDomains,
    params,
    summary: 'List trusted domains (beta)',
    description: 'Where the provider may send people back to.',
    response: { 200: DomainsReply, ...errorReply },
  };
  app.get(`${path}/domains`, { schema: list }, (request) =>
    atProvider(parts, request, async (project) => ({
      domains: (await project.domains()).map((domain) => ({ domain, auth_provider: 'stack' as const })),
    })),
  );

  const add = {
    tags,
    ...ids.addDomain,
    params,
    summary: 'Add a trusted domain (beta)',
    description: 'An origin; labels of its host may be `*`.',
    body: DomainAddBody,
    response: { 201: nothing, ...errorReply },
  };
  app.post(`${path}/domains`, { schema: add }, async (request, reply) => {
    await atProvider(parts, request, async (project) => {
      await project.addDomain(requireDomain(request.body.domain, 'body.domain'));
      return {};
    });
    return reply.status(201).send();
  });

  const remove = {
    tags,
    ...ids.removeDomains,
    params,
    summary: 'Remove trusted domains (beta)',
    description: 'Those that are not trusted anyway are passed over.',
    body: DomainsDeleteBody,
    response: { 200: nothing, ...errorReply },
  };
  app.delete(`${path}/domains`, { schema: remove }, async (request, reply) => {
    await atProvider(parts, request, async (project) => {
      const origins = request.body.domains.map(({ domain }, at) => requireDomain(domain, `body.domains[${at}].domain`));
      for (const origin of origins) {
        await project.removeDomain(origin).catch((error) => {
          if (!isProviderFailure(error, 'missing')) throw error;
        });
      }
      return {};
    });
    return reply.status(200).send();
  });
}

function oauthRoutes(app: App, parts: ApiParts, { path, params, memberParams, ids }: Form): void {
  const list = {
    tags,
    ...ids.listOauth,
    params,
    summary: 'List OAuth providers (beta)',
    description: 'Those that people may sign in with. The embedded auth provider has no shared ones.',
    response: { 200: OauthProvidersReply, ...errorReply },
  };
  app.get(`${path}/oauth_providers`, { schema: list }, (request) =>
    atProvider(parts, request, async (project, integration) => ({
      providers: oauthViews(await project.oauthProviders(), oauthIds(parts, integration)),
    })),
  );

  const add = {
    tags,
    ...ids.addOauth,
    params,
    summary: 'Add an OAuth provider (beta)',
    description:
      'With client id and secret of your own; only an auth provider elsewhere may have shared ones. Besides the ' +
      'published ids there are those for which the operator has named an issuer.',
    body: OauthAddBody,
    response: { 200: OauthProvider, ...errorReply },
  };
  app.post(`${path}/oauth_providers`, { schema: add }, (request) =>
    atProvider(parts, request, async (project, integration) => {
      const { id } = request.body;
      const allowed = oauthIds(parts, integration);
      if (!allowed.includes(id)) throw invalid(`invalid request: body.id must be one of ${allowed.join(', ')}`);
      if (integration.providerUrl === null) requireOwnCredentials(request.body);
      if ((await project.oauthProviders()).some((other) => other.id === id)) {
        throw new CatnapError('conflict', `the OAuth provider ${id} already exists`);
      }
      return oauthView(await project.addOauthProvider(id, credentialsOf(request.body)));
    }),
  );

  const update = {
    tags,
    ...ids.updateOauth,
    params: memberParams,
    summary: 'Change an OAuth provider (beta)',
    description: 'Its client id, its secret, or its tenant.',
    body: OauthUpdateBody,
    response: { 200: OauthProvider, ...errorReply },
  };
  app.patch(`${path}/oauth_providers/:oauth_provider_id`, { schema: update }, (request) =>
    atProvider(parts, request, (project) =>
      orNotFound(async () => {
        const id = request.params.oauth_provider_id;
        return oauthView(await project.updateOauthProvider(id, credentialsOf(request.body)));
      }),
    ),
  );

  const remove = {
    tags,
    ...ids.removeOauth,
    params: memberParams,
    summary: 'Remove an OAuth provider (beta)',
    description: 'Nobody can sign in with it any more.',
    response: { 200: nothing, ...errorReply },
  };
  app.delete(`${path}/oauth_providers/:oauth_provider_id`, { schema: remove }, async (request, reply) => {
    await atProvider(parts, request, (project) =>
      orNotFound(async () => {
        await project.removeOauthProvider(request.params.oauth_provider_id);
        return {};
      }),
    );
    return reply.status(200).send();
  });
}

/** The operator's issuers are for the embedded provider. */
function oauthIds({ config }: ApiParts, { providerUrl }: AuthIntegration): string[] {
  return providerIdsOf(providerUrl === null ? config.oauthIssuers : {});
}

async function orNotFound<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw isProviderFailure(error, 'missing') ? notFound('OAuth provider') : error;
  }
}

interface CredentialsBody {
  readonly client_id?: string;
  readonly client_secret?: string;
  readonly microsoft_tenant_id?: string;
}

function credentialsOf({ client_id, client_secret, microsoft_tenant_id }: CredentialsBody) {
  return { clientId: client_id, clientSecret: client_secret, microsoftTenantId: microsoft_tenant_id };
}
