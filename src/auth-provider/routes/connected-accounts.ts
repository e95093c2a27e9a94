/** The accounts elsewhere that a user signs in with: listed and disconnected. Their access tokens are not kept. */
import { Type } from '@fastify/type-provider-typebox';
import { disconnectAccount } from '../core/oauth-accounts.ts';
import type { AuthProviderParts } from '../core/parts.ts';
import type { AuthProviderApp } from '../http/app-type.ts';
import { known, plain } from '../http/errors.ts';
import { Uuid } from '../http/schemas.ts';
import type { UserOauthAccount, UserRow } from '../statements/users.ts';
import { type AuthProviderCaller, callerOf, guarded, reachableUser } from './access.ts';

const UserId = Type.Union([Type.Literal('me'), Uuid]);
const UserQuery = Type.Object({ user_id: UserId });
const UserParams = UserQuery;
const AccountParams = Type.Object({ user_id: UserId, id: Uuid });
const ProviderParams = Type.Object({ user_id: UserId, provider: Type.String({ maxLength: 100 }) });
const TokenParams = Type.Object({
  user_id: UserId,
  provider: Type.String({ maxLength: 100 }),
  account: Type.String({ maxLength: 300 }),
});

const client = guarded('client');
const server = guarded('server');

export function connectedAccountRoutes(app: AuthProviderApp, parts: AuthProviderParts): void {
  const find = async (caller: AuthProviderCaller, userId: string, id: string) => {
    const user = await reachableUser(parts, caller, userId);
    const account = user.oauthAccounts.find((one) => one.id === id.toLowerCase());
    if (account === undefined) throw plain(404, 'The user has no such OAuth account.');
    return { user, account };
  };

  app.get('/oauth-providers', { ...client, schema: { ...client.schema, querystring: UserQuery } }, async (request) => {
    const caller = callerOf(request);
    const user = await reachableUser(parts, caller, request.query.user_id);
    return { items: user.oauthAccounts.map((account) => accountView(caller, user, account)), is_paginated: false };
  });

  const one = '/oauth-providers/:user_id/:id';
  app.get(one, { ...client, schema: { ...client.schema, params: AccountParams } }, async (request) => {
    const caller = callerOf(request);
    const { user, account } = await find(caller, request.params.user_id, request.params.id);
    return accountView(caller, user, account);
  });

  app.delete(one, { ...client, schema: { ...client.schema, params: AccountParams } }, async (request) => {
    const caller = callerOf(request);
    const { user, account } = await find(caller, request.params.user_id, request.params.id);
    await disconnectAccount(parts, caller.project.id, user.id, account.id);
    return { success: true };
  });

  app.patch(one, { ...client, schema: { ...client.schema, params: AccountParams } }, async () => {
    throw plain(400, 'OAuth accounts cannot be changed here: connect them by signing in, or disconnect them.');
  });

  app.post('/oauth-providers', server, async () => {
    throw plain(400, 'OAuth accounts cannot be entered here: they are connected by signing in.');
  });

  app.get(
    '/connected-accounts/:user_id',
    { ...client, schema: { ...client.schema, params: UserParams } },
    async (request) => {
      const user = await reachableUser(parts, callerOf(request), request.params.user_id);
      const items = user.oauthAccounts.map((account) => ({
        user_id: user.id,
        provider: account.providerId,
        provider_account_id: account.accountId,
      }));
      return { items, is_paginated: false };
    },
  );

  for (const [path, params] of [
    ['/connected-accounts/:user_id/:provider/access-token', ProviderParams],
    ['/connected-accounts/:user_id/:provider/:account/access-token', TokenParams],
  ] as const) {
    app.post(path, { ...client, schema: { ...client.schema, params } }, async (request) => {
      await reachableUser(parts, callerOf(request), request.params.user_id);
      const { provider } = request.params;
      const details = 'This auth provider does not keep access tokens of OAuth providers.';
      throw known('OAUTH_ACCESS_TOKEN_NOT_AVAILABLE', details, { provider, details });
    });
  }
}

function accountView(caller: AuthProviderCaller, user: UserRow, account: UserOauthAccount) {
  return {
    id: account.id,
    user_id: user.id,
    provider_config_id: account.providerId,
    type: account.providerId,
    ...(account.email === null ? {} : { email: account.email }),
    allow_sign_in: true,
    allow_connected_accounts: false,
    ...(caller.access === 'client' ? {} : { account_id: account.accountId }),
  };
}
