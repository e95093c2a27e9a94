/** Sessions: listed, ended, made by servers; and the two ways to refresh an access token. */
import { Type } from '@fastify/type-provider-typebox';
import type { Limits } from '../core/limits.ts';
import { redeemVisit } from '../core/oauth-visits.ts';
import type { AuthProviderParts } from '../core/parts.ts';
import {
  noSession,
  refreshSession,
  sessionMsMax,
  sessionMsStandard,
  sessionView,
  startSession,
  type Tokens,
} from '../core/sessions.ts';
import { tokenSeconds } from '../core/signing.ts';
import type { AuthProviderApp } from '../http/app-type.ts';
import { known, plain, schemaError } from '../http/errors.ts';
import { readHeader } from '../http/headers.ts';
import { closed, IdParams, Uuid } from '../http/schemas.ts';
import { deleteSession, selectSession, selectSessionsOfUser } from '../statements/sessions.ts';
import { selectUser } from '../statements/users.ts';
import { type AuthProviderCaller, callerOf, guarded, requireOauthClient, requireOwnUser } from './access.ts';

const UserQuery = Type.Object({ user_id: Type.Union([Type.Literal('me'), Uuid]) });
const OptionalUserQuery = Type.Partial(UserQuery);
const NewSession = Type.Object(
  {
    user_id: Uuid,
    expires_in_millis: Type.Optional(Type.Integer({ minimum: 1, maximum: sessionMsMax })),
    is_impersonation: Type.Optional(Type.Boolean()),
  },
  closed,
);
const Text = Type.Optional(Type.String({ maxLength: 500 }));
/** Allows unknown fields, because OAuth clients may send more. */
const TokenBody = Type.Object({
  grant_type: Type.String({ maxLength: 100 }),
  refresh_token: Text,
  code: Text,
  code_verifier: Text,
  redirect_uri: Type.Optional(Type.String({ maxLength: 2000 })),
  client_id: Text,
  client_secret: Text,
});

const client = guarded('client');
const server = guarded('server');
const open = guarded('open');

export function sessionRoutes(app: AuthProviderApp, parts: AuthProviderParts, limits: Limits): void {
  const { sql } = parts.database;

  app.post('/auth/sessions', { ...server, schema: { ...server.schema, body: NewSession } }, async (request) => {
    const { body } = request;
    const user = await selectUser(sql, callerOf(request).project.id, body.user_id);
    if (user === undefined) {
      throw known('USER_ID_DOES_NOT_EXIST', 'There is no such user in this project.', { user_id: body.user_id });
    }
    const tokens = await startSession(parts, user, {
      from: request.ip,
      isImpersonation: body.is_impersonation ?? false,
      lastsMs: body.expires_in_millis ?? sessionMsStandard,
    });
    return { refresh_token: tokens.refreshToken, access_token: tokens.accessToken };
  });

  app.get('/auth/sessions', { ...client, schema: { ...client.schema, querystring: UserQuery } }, async (request) => {
    const caller = callerOf(request);
    const userId = await whoseSessions(parts, caller, request.query.user_id);
    const sessions = await selectSessionsOfUser(sql, caller.project.id, userId, parts.clock.now());
    const shown = sessions.filter((session) => caller.access !== 'client' || !session.isImpersonation);
    return { items: shown.map((session) => sessionView(session, caller.token?.sessionId)), is_paginated: false };
  });

  app.delete(
    '/auth/sessions/:id',
    { ...client, schema: { ...client.schema, params: IdParams, querystring: OptionalUserQuery } },
    async (request) => {
      const caller = callerOf(request);
      const session = await selectSession(sql, request.params.id, parts.clock.now());
      const owner = caller.access === 'client' ? (await requireOwnUser(parts, caller)).id : session?.userId;
      if (session === undefined || session.projectId !== caller.project.id || session.userId !== owner) {
        throw plain(404, 'There is no such session.');
      }
      if (session.id === caller.token?.sessionId) {
        throw known('CANNOT_DELETE_CURRENT_SESSION', 'The current session ends by signing out.');
      }
      await deleteSession(sql, caller.project.id, session.id);
      return { success: true };
    },
  );

  app.delete('/auth/sessions/current', client, async (request) => {
    const { token, project } = callerOf(request);
    if (token === null || !(await deleteSession(sql, project.id, token.sessionId))) throw noSession();
    return { success: true };
  });

  refreshRoutes(app, parts, limits);
}

function refreshRoutes(app: AuthProviderApp, parts: AuthProviderParts, limits: Limits): void {
  app.post('/auth/sessions/current/refresh', client, async (request) => {
    const token = readHeader(request, 'refresh-token');
    if (token === undefined) throw noSession();
    limits.address('refresh', request.ip);
    const tokens = await refreshSession(parts, callerOf(request).project.id, token, request.ip);
    return { access_token: tokens.accessToken };
  });

  app.post('/auth/oauth/token', { ...open, schema: { ...open.schema, body: TokenBody } }, async (request) => {
    const { body } = request;
    limits.address('refresh', request.ip);
    const { id: projectId } = await requireOauthClient(parts, body.client_id, body.client_secret);
    if (body.grant_type === 'authorization_code') {
      const { code, redirect_uri: redirectUri, code_verifier: codeVerifier } = body;
      if (code === undefined) throw schemaError('body.code is required');
      if (redirectUri === undefined) throw schemaError('body.redirect_uri is required');
      if (codeVerifier === undefined) throw schemaError('body.code_verifier is required');
      const given = { code, redirectUri, codeVerifier, from: request.ip };
      const { tokens, ...more } = await redeemVisit(parts, projectId, given);
      return {
        ...tokenView(parts, tokens),
        is_new_user: more.isNewUser,
        ...(more.afterCallbackRedirectUrl === null
          ? {}
          : { after_callback_redirect_url: more.afterCallbackRedirectUrl }),
      };
    }
    if (body.grant_type !== 'refresh_token') {
      throw schemaError('body.grant_type must be authorization_code or refresh_token');
    }
    if (body.refresh_token === undefined) throw schemaError('body.refresh_token is required');
    return tokenView(parts, await refreshSession(parts, projectId, body.refresh_token, request.ip));
  });
}

function tokenView(parts: AuthProviderParts, tokens: Tokens) {
  return {
    access_token: tokens.accessToken,
    refresh_token: tokens.refreshToken,
    token_type: 'Bearer',
    expires_in: tokenSeconds(parts),
    scope: 'legacy',
  };
}

async function whoseSessions(parts: AuthProviderParts, caller: AuthProviderCaller, asked: string): Promise<string> {
  if (asked === 'me') return (await requireOwnUser(parts, caller)).id;
  if (caller.access === 'client' && caller.token?.userId !== asked)
    throw plain(403, 'Clients list their own sessions.');
  return asked;
}
