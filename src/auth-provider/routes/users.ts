/** Users, for the project's servers; and `me`, for the user's own client. */
import { Type } from '@fastify/type-provider-typebox';
import type { AuthProviderParts } from '../core/parts.ts';
import { changeUser, createUser, removeUser, userNotFound } from '../core/user-commands.ts';
import { changeFromOwner, changeFromServer, NewUserBody, OwnChangeBody, UserChangeBody } from '../core/user-input.ts';
import { clientUserView, serverUserView } from '../core/user-view.ts';
import type { AuthProviderApp } from '../http/app-type.ts';
import { plain, schemaError } from '../http/errors.ts';
import { IdParams, Uuid } from '../http/schemas.ts';
import { selectUser, selectUsers, type UserRow } from '../statements/users.ts';
import { callerOf, guarded, requireOwnUser } from './access.ts';

const Flag = Type.Optional(Type.Boolean());
const ListQuery = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
  cursor: Type.Optional(Uuid),
  order_by: Type.Optional(Type.Union([Type.Literal('signed_up_at'), Type.Literal('last_active_at')])),
  desc: Flag,
  query: Type.Optional(Type.String({ maxLength: 500 })),
  team_id: Type.Optional(Uuid),
  include_anonymous: Flag,
  only_anonymous: Flag,
  include_restricted: Flag,
});

const server = guarded('server');
const client = guarded('client');
/** The most in one reply; a client that names no limit gets up to this many users, and a cursor when there are more. */
const pageMax = 10_000;

export function userRoutes(app: AuthProviderApp, parts: AuthProviderParts): void {
  const { sql } = parts.database;

  app.get('/users', { ...server, schema: { ...server.schema, querystring: ListQuery } }, async (request) => {
    const { query } = request;
    if (query.only_anonymous && !query.include_anonymous) {
      throw schemaError('query.only_anonymous needs include_anonymous');
    }
    const limit = Math.min(query.limit ?? pageMax, pageMax);
    const users = await selectUsers(sql, {
      projectId: callerOf(request).project.id,
      // One more shows where the next page begins.
      limit: limit + 1,
      cursor: query.cursor,
      isDescending: query.desc === true,
      orderBy: query.order_by ?? 'signed_up_at',
      text: query.query,
      teamId: query.team_id,
      includesAnonymous: query.include_anonymous === true,
      onlyAnonymous: query.only_anonymous === true,
      includesRestricted: query.include_restricted === true || query.include_anonymous === true,
    });
    return {
      items: users.slice(0, limit).map(serverUserView),
      is_paginated: true,
      pagination: { next_cursor: users[limit]?.id ?? null },
    };
  });

  app.post('/users', { ...server, schema: { ...server.schema, body: NewUserBody } }, async (request, reply) => {
    const input = await changeFromServer(request.body);
    const user = await createUser(parts, callerOf(request).project.id, input);
    return reply.status(201).send(serverUserView(user));
  });

  app.get('/users/:id', { ...server, schema: { ...server.schema, params: IdParams } }, async (request) => {
    const user = await selectUser(sql, callerOf(request).project.id, request.params.id);
    if (user === undefined) throw userNotFound();
    return serverUserView(user);
  });

  app.patch(
    '/users/:id',
    { ...server, schema: { ...server.schema, params: IdParams, body: UserChangeBody } },
    async (request) =>
      serverUserView(await serverChange(parts, callerOf(request).project.id, request.params.id, request.body)),
  );

  app.delete('/users/:id', { ...server, schema: { ...server.schema, params: IdParams } }, async (request) => {
    await removeUser(parts, callerOf(request).project.id, request.params.id);
    return { success: true };
  });

  ownUserRoutes(app, parts);
}

function ownUserRoutes(app: AuthProviderApp, parts: AuthProviderParts): void {
  const view = (access: string, user: UserRow) => (access === 'client' ? clientUserView(user) : serverUserView(user));

  app.get('/users/me', client, async (request) => {
    const caller = callerOf(request);
    return view(caller.access, await requireOwnUser(parts, caller));
  });

  app.patch('/users/me', { ...client, schema: { ...client.schema, body: OwnChangeBody } }, async (request) => {
    const caller = callerOf(request);
    const { id } = await requireOwnUser(parts, caller);
    return view(caller.access, await changeUser(parts, caller.project.id, id, changeFromOwner(request.body)));
  });

  app.delete('/users/me', client, async (request) => {
    const caller = callerOf(request);
    const { id } = await requireOwnUser(parts, caller);
    if (caller.access === 'client' && !caller.project.clientUserDeletionEnabled) {
      throw plain(400, 'This project does not let users delete their own accounts.');
    }
    await removeUser(parts, caller.project.id, id);
    return { success: true };
  });
}

/** A new password ends every session, so that anyone who knew the old one is signed out. */
async function serverChange(
  parts: AuthProviderParts,
  projectId: string,
  userId: string,
  body: Parameters<typeof changeFromServer>[0],
): Promise<UserRow> {
  const change = await changeFromServer(body);
  const options = change.passwordHash === undefined ? {} : { endSessionsExcept: null };
  return changeUser(parts, projectId, userId, change, options);
}
