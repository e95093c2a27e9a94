/**
 * OAuth providers of a project: their configuration is kept for the control plane. Signing in with them is not part of
 * this provider, and the routes that would do so say that.
 */
import { Type } from '@fastify/type-provider-typebox';
import type { AuthProviderParts } from '../core/parts.ts';
import type { AuthProviderApp } from '../http/app-type.ts';
import { plain } from '../http/errors.ts';
import { closed } from '../http/schemas.ts';
import {
  deleteOauthProvider,
  insertOauthProvider,
  type OauthProviderRow,
  selectOauthProvider,
  selectOauthProviders,
  updateOauthProvider,
} from '../statements/oauth-providers.ts';
import { callerOf, guarded } from './access.ts';

const ids = ['google', 'github', 'microsoft', 'vercel', 'facebook', 'gitlab', 'bitbucket', 'discord', 'linkedin'];
const more = ['apple', 'spotify', 'twitch', 'x'];

const Id = Type.Union([...ids, ...more].map((id) => Type.Literal(id)));
const ProviderType = Type.Union([Type.Literal('shared'), Type.Literal('standard')]);
const settings = {
  type: Type.Optional(ProviderType),
  client_id: Type.Optional(Type.String({ minLength: 1, maxLength: 500 })),
  client_secret: Type.Optional(Type.String({ minLength: 1, maxLength: 2000 })),
  facebook_config_id: Type.Optional(Type.String({ maxLength: 500 })),
  microsoft_tenant_id: Type.Optional(Type.String({ maxLength: 500 })),
};
const NewProvider = Type.Object({ id: Id, ...settings }, closed);
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
    const { body } = request;
    const { project } = callerOf(request);
    const row = merged(parts, blank(project.id, String(body.id)), body);
    const made = await insertOauthProvider(sql, row);
    if (made === undefined) throw plain(400, 'The project has this OAuth provider already.');
    return reply.status(201).send(view(made));
  });

  app.patch(
    `${path}/:id`,
    { ...admin, schema: { ...admin.schema, params: ProviderParams, body: ProviderChange } },
    async (request) => {
      const { project } = callerOf(request);
      return transaction(async (tx) => {
        const row = await selectOauthProvider(tx, project.id, request.params.id);
        if (row === undefined) throw notFound();
        return view(await updateOauthProvider(tx, merged(parts, row, request.body)));
      });
    },
  );

  app.delete(`${path}/:id`, { ...admin, schema: { ...admin.schema, params: ProviderParams } }, async (request) => {
    if (!(await deleteOauthProvider(sql, callerOf(request).project.id, request.params.id))) throw notFound();
    return { success: true };
  });

  for (const use of ['/auth/oauth/authorize/:provider', '/auth/oauth/callback/:provider']) {
    app.get(use, guarded('open'), async () => {
      throw plain(501, 'Signing in with OAuth providers is not built into this provider; use an external one for it.');
    });
  }
}

const notFound = () => plain(404, 'The project has no such OAuth provider.');

const blank = (projectId: string, id: string): OauthProviderRow => ({
  projectId,
  id,
  type: 'shared',
  clientId: null,
  clientSecret: null,
  facebookConfigId: null,
  microsoftTenantId: null,
});

interface Settings {
  readonly type?: 'shared' | 'standard';
  readonly client_id?: string;
  readonly client_secret?: string;
  readonly facebook_config_id?: string;
  readonly microsoft_tenant_id?: string;
}

/** A provider with its own credentials is `standard` unless the change says otherwise. */
function merged(parts: AuthProviderParts, row: OauthProviderRow, change: Settings): OauthProviderRow {
  const { client_secret: secret } = change;
  const type = change.type ?? (change.client_id !== undefined ? 'standard' : row.type);
  const next: OauthProviderRow = {
    ...row,
    type,
    clientId: type === 'shared' ? null : (change.client_id ?? row.clientId),
    clientSecret: type === 'shared' ? null : secret === undefined ? row.clientSecret : seal(parts, row, secret),
    facebookConfigId: change.facebook_config_id ?? row.facebookConfigId,
    microsoftTenantId: change.microsoft_tenant_id ?? row.microsoftTenantId,
  };
  if (type === 'standard' && (next.clientId === null || next.clientSecret === null)) {
    throw plain(400, 'A standard OAuth provider needs client_id and client_secret.');
  }
  return next;
}

const clientSecretSealContext = ({ projectId, id }: OauthProviderRow) => `stack-oauth-provider:${projectId}:${id}`;
const seal = (parts: AuthProviderParts, row: OauthProviderRow, secret: string) =>
  parts.box.seal(secret, clientSecretSealContext(row));

function providerView(parts: AuthProviderParts, row: OauthProviderRow) {
  return {
    id: row.id,
    type: row.type,
    ...(row.clientId === null ? {} : { client_id: row.clientId }),
    ...(row.clientSecret === null
      ? {}
      : { client_secret: parts.box.open(row.clientSecret, clientSecretSealContext(row)) }),
    ...(row.facebookConfigId === null ? {} : { facebook_config_id: row.facebookConfigId }),
    ...(row.microsoftTenantId === null ? {} : { microsoft_tenant_id: row.microsoftTenantId }),
  };
}
