/** API keys: personal ones, and those of an organization, which may be limited to one project. */
import { Type } from 'typebox';
import {
  createOrganizationApiKey,
  createPersonalApiKey,
  listOrganizationApiKeys,
  listPersonalApiKeys,
  revokeOrganizationApiKey,
  revokePersonalApiKey,
} from '../../core/api-key.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import {
  ApiKey,
  ApiKeyCreateBody,
  ApiKeyCreated,
  ApiKeyParams,
  ApiKeyRevoked,
  OrgApiKeyCreateBody,
  OrgApiKeyParams,
} from '../schemas/api-key.ts';
import { ref } from '../schemas/common.ts';
import { errorReply } from '../schemas/error.ts';
import { OrganizationParams } from '../schemas/organization.ts';
import {
  apiKeyView,
  createdApiKeyView,
  keyIdOf,
  organizationKeyInput,
  personalKeyInput,
  revokedApiKeyView,
} from '../views/api-key.ts';
import { organizationAddress } from '../views/params.ts';
import { ask, write } from './command.ts';

const tags = ['API keys'];
const listReply = { 200: Type.Array(ref(ApiKey)), ...errorReply };
const createReply = { 200: ref(ApiKeyCreated), ...errorReply };
const revokeReply = { 200: ref(ApiKeyRevoked), ...errorReply };

export function apiKeyRoutes(app: App, parts: ApiParts): void {
  personalRoutes(app, parts);
  organizationRoutes(app, parts);
}

function personalRoutes(app: App, parts: ApiParts): void {
  const list = {
    tags,
    operationId: 'listApiKeys',
    summary: 'List personal keys',
    description: 'The caller’s own keys, without their secrets.',
    response: listReply,
  };
  app.get('/api_keys', { schema: list }, (request) =>
    ask(parts, request, async (scope, caller) => (await listPersonalApiKeys(scope, caller)).map(apiKeyView)),
  );

  const create = {
    tags,
    operationId: 'createApiKey',
    summary: 'Create a personal key',
    description: 'Reaches whatever its user reaches. The secret is in this reply and is not shown again.',
    body: ApiKeyCreateBody,
    response: createReply,
  };
  app.post('/api_keys', { schema: create }, (request) =>
    write(parts, request, async (scope, caller) =>
      createdApiKeyView(await createPersonalApiKey(scope, caller, personalKeyInput(request.body))),
    ),
  );

  const revoke = {
    tags,
    operationId: 'revokeApiKey',
    summary: 'Revoke a personal key',
    description: 'It stops working at once.',
    params: ApiKeyParams,
    response: revokeReply,
  };
  app.delete('/api_keys/:key_id', { schema: revoke }, (request) =>
    write(parts, request, async (scope, caller) =>
      revokedApiKeyView(await revokePersonalApiKey(scope, caller, keyIdOf(request.params))),
    ),
  );
}

function organizationRoutes(app: App, parts: ApiParts): void {
  const collection = '/organizations/:org_id/api_keys';
  const list = {
    tags,
    operationId: 'listOrgApiKeys',
    summary: 'List the keys of an organization',
    description: 'Without their secrets; those limited to a project name it.',
    params: OrganizationParams,
    response: listReply,
  };
  app.get(collection, { schema: list }, (request) =>
    ask(parts, request, async (scope, caller) =>
      (await listOrganizationApiKeys(scope, caller, organizationAddress(request.params))).map(apiKeyView),
    ),
  );

  const create = {
    tags,
    operationId: 'createOrgApiKey',
    summary: 'Create a key of an organization',
    description:
      'Reaches every project of the organization, or with `project_id` that one project, without the rights to ' +
      'delete it or to make keys.',
    params: OrganizationParams,
    body: OrgApiKeyCreateBody,
    response: createReply,
  };
  app.post(collection, { schema: create, config: { requestsPerSecond: 10 } }, (request) =>
    write(parts, request, async (scope, caller) => {
      const input = organizationKeyInput(request.params, request.body);
      return createdApiKeyView(await createOrganizationApiKey(scope, caller, input));
    }),
  );

  const revoke = {
    tags,
    operationId: 'revokeOrgApiKey',
    summary: 'Revoke a key of an organization',
    description: 'It stops working at once.',
    params: OrgApiKeyParams,
    response: revokeReply,
  };
  app.delete(`${collection}/:key_id`, { schema: revoke }, (request) =>
    write(parts, request, async (scope, caller) => {
      const organizationId = organizationAddress(request.params);
      return revokedApiKeyView(await revokeOrganizationApiKey(scope, caller, organizationId, keyIdOf(request.params)));
    }),
  );
}
