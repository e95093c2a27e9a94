/** OAuth providers of a project, as its administrators set them up: each with credentials of the project's own. */
import { Type } from '@fastify/type-provider-typebox';
import type { AuthProviderParts } from '../core/parts.ts';
import type { AuthProviderApp } from '../http/app-type.ts';
import { plain, schemaError } from '../http/errors.ts';
import { closed } from '../http/schemas.ts';
import {
  deleteOauthProvider,
  insertOauthProvider,
  lockOauthProvider,
  type OauthProviderRow,
  oauthSecretSealContext,
  selectOauthProviders,
  updateOauthProvider,
} from '../statements/oauth-providers.ts';
import { providerIdsOf, tenantPattern } from '../third-party/identity-providers.ts';
import { callerOf, guarded } from './access.ts';

const settings = {
  type: Type.Optional(Type.Union([Type.Literal('shared'), Type.Literal('standard')])),
  client_id: Type.Optional(Type.String({ minLength: 1, maxLength: 500 })),
  client_secret: Type.Optional(Type.String({ minLength: 1, maxLength: 2000 })),
  microsoft_tenant_id: Type.Optional(Type.String({ pattern: tenantPattern })),
};
const NewProvider = Type.Object({ id: Type.String({ maxLength: 100 }), ...settings }, closed);
const ProviderChange = Type.Object(settings, closed);
const ProviderParams = Type.Object({ id: Type.String({ maxLength: 100 }) });

const admin = guarded('admin');
const path = '/integrations/neon/oauth-providers';

export function oauthProviderRoutes(app: AuthProviderApp, parts: AuthProviderParts): void {
  const { sql, transaction } = parts.database;
  const view = (row: OauthProviderRow) => providerView(parts, row);

  app.get(path, admin, async (request) => {
    const rows = await selectOauthProviders(sql, callerOf(request).project.id);
    return { items: rows.map(view), is_paginated: false };
  });

  app.post(path, { ...admin, schema: { ...admin.schema, body: NewProvider } }, async (request, reply) => {
    const { id, client_id: clientId, client_secret: secret, ...more } = request.body;
    const ids = providerIdsOf(parts.oauthIssuers);
    if (!ids.includes(id)) throw schemaError(`body.id must be one of ${ids.join(', ')}`);
    requireOwn(more.type);
    if (clientId === undefined || secret === undefined) throw sharedKeys();
    const projectId = callerOf(request).project.id;
    const clientSecret = parts.box.seal(secret, oauthSecretSealContext({ projectId, id }));
    const microsoftTenantId = more.microsoft_tenant_id ?? null;
    const made = await insertOauthProvider(sql, { projectId, id, clientId, clientSecret, microsoftTenantId });
    if (made === undefined) throw plain(400, 'The project has this OAuth provider already.');
    return reply.status(201).send(view(made));
  });

  app.patch(
    `${path}/:id`,
    { ...admin, schema: { ...admin.schema, params: ProviderParams, body: ProviderChange } },
    async (request) => {
      const { project } = callerOf(request);
      const { body } = request;
      requireOwn(body.type);
      return transaction(async (tx) => {
        const row = await lockOauthProvider(tx, project.id, request.params.id);
        if (row === undefined) throw notFound();
        const secret = body.client_secret;
        const changed = await updateOauthProvider(tx, {
          ...row,
          clientId: body.client_id ?? row.clientId,
          clientSecret: secret === undefined ? row.clientSecret : parts.box.seal(secret, oauthSecretSealContext(row)),
          microsoftTenantId: body.microsoft_tenant_id ?? row.microsoftTenantId,
        });
        return view(changed);
      });
    },
  );

  app.delete(`${path}/:id`, { ...admin, schema: { ...admin.schema, params: ProviderParams } }, async (request) => {
    if (!(await deleteOauthProvider(sql, callerOf(request).project.id, request.params.id))) throw notFound();
    return { success: true };
  });
}

const notFound = () => plain(404, 'The project has no such OAuth provider.');
const sharedKeys = () =>
  plain(422, 'Shared keys belong to the hosted service: give client_id and client_secret of an application of yours.');

function requireOwn(type: 'shared' | 'standard' | undefined): void {
  if (type === 'shared') throw sharedKeys();
}

function providerView(parts: AuthProviderParts, row: OauthProviderRow) {
  return {
    id: row.id,
    type: 'standard',
    client_id: row.clientId,
    client_secret: parts.box.open(row.clientSecret, oauthSecretSealContext(row)),
    ...(row.microsoftTenantId === null ? {} : { microsoft_tenant_id: row.microsoftTenantId }),
  };
}
