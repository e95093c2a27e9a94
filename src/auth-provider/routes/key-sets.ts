/** Key sets of a project, for its administrators: created, listed, renamed, revoked. */
import { Type } from '@fastify/type-provider-typebox';
import { makeKeySet } from '../core/key-sets.ts';
import type { AuthProviderParts } from '../core/parts.ts';
import { keySetFacts, keySetView } from '../core/views.ts';
import type { AuthProviderApp } from '../http/app-type.ts';
import { known, schemaError } from '../http/errors.ts';
import { closed, IdParams } from '../http/schemas.ts';
import { selectKeySet, selectKeySets, updateKeySet } from '../statements/key-sets.ts';
import { callerOf, guarded } from './access.ts';

const NewKeySet = Type.Object(
  {
    description: Type.String({ maxLength: 1000 }),
    // The range of a Date.
    expires_at_millis: Type.Integer({ minimum: 0, maximum: 8_640_000_000_000_000 }),
    has_publishable_client_key: Type.Boolean(),
    has_secret_server_key: Type.Boolean(),
    has_super_secret_admin_key: Type.Boolean(),
  },
  closed,
);

const KeySetChange = Type.Object(
  { description: Type.Optional(Type.String({ maxLength: 1000 })), revoked: Type.Optional(Type.Literal(true)) },
  closed,
);

const admin = guarded('admin');
/** The second path is used by Stack's own dashboard. */
const paths = ['/integrations/neon/api-keys', '/internal/api-keys'];

export function keySetRoutes(app: AuthProviderApp, parts: AuthProviderParts): void {
  const { sql } = parts.database;
  for (const path of paths) {
    app.get(path, admin, async (request) => {
      const sets = await selectKeySets(sql, callerOf(request).project.id);
      return { items: sets.map(keySetView), is_paginated: false };
    });

    app.post(path, { ...admin, schema: { ...admin.schema, body: NewKeySet } }, async (request) => {
      const { body } = request;
      const made = await makeKeySet(sql, {
        projectId: callerOf(request).project.id,
        description: body.description,
        expiresAt: requireFuture(body.expires_at_millis, parts.clock.now()),
        publishable: body.has_publishable_client_key,
        secret: body.has_secret_server_key,
        admin: body.has_super_secret_admin_key,
      });
      return {
        ...keySetFacts(made.row),
        publishable_client_key: made.publishableKey,
        secret_server_key: made.secretKey,
        super_secret_admin_key: made.adminKey,
      };
    });

    app.get(`${path}/:id`, { ...admin, schema: { ...admin.schema, params: IdParams } }, async (request) => {
      const set = await selectKeySet(sql, callerOf(request).project.id, request.params.id);
      if (set === undefined) throw notFound();
      return keySetView(set);
    });

    app.patch(
      `${path}/:id`,
      { ...admin, schema: { ...admin.schema, params: IdParams, body: KeySetChange } },
      async (request) => {
        const { description, revoked } = request.body;
        const revokedAt = revoked ? parts.clock.now() : undefined;
        const { project } = callerOf(request);
        const set = await updateKeySet(sql, project.id, request.params.id, { description, revokedAt });
        if (set === undefined) throw notFound();
        return keySetView(set);
      },
    );
  }
}

function requireFuture(millis: number, now: Date): Date {
  if (millis <= now.getTime()) throw schemaError('body.expires_at_millis must be in the future');
  // Postgres timestamps end a little after the year 294000; this limit is enough.
  return new Date(Math.min(millis, Date.UTC(9999, 0, 1)));
}

const notFound = () => known('API_KEY_NOT_FOUND', 'There is no such key set in this project.');
