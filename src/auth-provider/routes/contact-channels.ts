/**
 * Contact channels, as far as this provider has them: the one e-mail address of a user. Also teams, which exist here
 * only as owners of projects.
 */
import { Type } from '@fastify/type-provider-typebox';
import { requireTrustedUrl } from '../core/domains.ts';
import type { Limits } from '../core/limits.ts';
import { sendCodeMail } from '../core/mails.ts';
import type { AuthProviderParts } from '../core/parts.ts';
import { changeUser } from '../core/user-commands.ts';
import { normalEmail } from '../core/user-input.ts';
import type { AuthProviderApp } from '../http/app-type.ts';
import { known, plain } from '../http/errors.ts';
import { closed, Email, Uuid, WebUrl } from '../http/schemas.ts';
import { selectDomains } from '../statements/domains.ts';
import { selectTeamsOfUser } from '../statements/teams.ts';
import type { UserChange, UserRow } from '../statements/users.ts';
import { type AuthProviderCaller, callerOf, guarded, reachableUser } from './access.ts';

const UserId = Type.Union([Type.Literal('me'), Uuid]);
const UserQuery = Type.Object({ user_id: UserId });
const ChannelParams = Type.Object({ user_id: UserId, id: Uuid });
const flag = Type.Optional(Type.Boolean());
const kind = Type.Literal('email');
const NewChannel = Type.Object(
  { user_id: UserId, value: Email, type: kind, used_for_auth: Type.Boolean(), is_primary: flag, is_verified: flag },
  closed,
);
const ChannelChange = Type.Object(
  {
    value: Type.Optional(Email),
    type: Type.Optional(kind),
    used_for_auth: flag,
    is_primary: Type.Optional(Type.Literal(true)),
    is_verified: flag,
  },
  closed,
);
const SendBody = Type.Object({ callback_url: WebUrl }, closed);

const client = guarded('client');
const path = '/contact-channels';

export function contactChannelRoutes(app: AuthProviderApp, parts: AuthProviderParts, limits: Limits): void {
  const find = async (caller: AuthProviderCaller, userId: string, id: string) => {
    const user = await reachableUser(parts, caller, userId);
    if (user.primaryEmail === null || user.emailChannelId !== id.toLowerCase()) throw noChannel();
    return { ...user, primaryEmail: user.primaryEmail };
  };

  app.get(path, { ...client, schema: { ...client.schema, querystring: UserQuery } }, async (request) => {
    const user = await reachableUser(parts, callerOf(request), request.query.user_id);
    return { items: channelsOf(user), is_paginated: false };
  });

  app.post(path, { ...client, schema: { ...client.schema, body: NewChannel } }, async (request, reply) => {
    const caller = callerOf(request);
    const { user_id: userId, ...channel } = request.body;
    const { id } = await reachableUser(parts, caller, userId);
    const user = await changeUser(parts, caller.project.id, id, (before) => {
      if (before.primaryEmail !== null) throw plain(400, 'A user has one e-mail address here; change that one.');
      return changeOf(caller, channel);
    });
    return reply.status(201).send(channelsOf(user)[0]);
  });

  const one = `${path}/:user_id/:id`;
  app.get(one, { ...client, schema: { ...client.schema, params: ChannelParams } }, async (request) => {
    return channelsOf(await find(callerOf(request), request.params.user_id, request.params.id))[0];
  });

  app.patch(
    one,
    { ...client, schema: { ...client.schema, params: ChannelParams, body: ChannelChange } },
    async (request) => {
      const caller = callerOf(request);
      const { id } = await find(caller, request.params.user_id, request.params.id);
      return channelsOf(await changeUser(parts, caller.project.id, id, changeOf(caller, request.body)))[0];
    },
  );

  app.delete(one, { ...client, schema: { ...client.schema, params: ChannelParams } }, async (request) => {
    const caller = callerOf(request);
    const { id } = await find(caller, request.params.user_id, request.params.id);
    await changeUser(parts, caller.project.id, id, { primaryEmail: null });
    return { success: true };
  });

  app.post(
    `${one}/send-verification-code`,
    { ...client, schema: { ...client.schema, params: ChannelParams, body: SendBody } },
    async (request) => {
      const caller = callerOf(request);
      const user = await find(caller, request.params.user_id, request.params.id);
      if (user.primaryEmailVerified) throw known('EMAIL_ALREADY_VERIFIED', 'The address is verified already.');
      const callbackUrl = request.body.callback_url;
      requireTrustedUrl(caller.project, await selectDomains(parts.database.sql, caller.project.id), callbackUrl);
      limits.mail(`${caller.project.id} ${user.primaryEmail}`);
      await sendCodeMail(parts, caller.project, user, { kind: 'email_verification', callbackUrl });
      return { success: true };
    },
  );

  app.get(
    '/teams',
    { ...client, schema: { ...client.schema, querystring: Type.Partial(UserQuery) } },
    async (request) => {
      const { user_id: userId } = request.query;
      if (userId === undefined) return { items: [], is_paginated: false };
      const user = await reachableUser(parts, callerOf(request), userId);
      const teams = await selectTeamsOfUser(parts.database.sql, user.id);
      return { items: teams.map(teamView), is_paginated: false };
    },
  );
}

const noChannel = () => plain(404, 'The user has no such contact channel.');

interface ChannelInput {
  readonly value?: string;
  readonly used_for_auth?: boolean;
  readonly is_verified?: boolean;
}

function changeOf(caller: AuthProviderCaller, input: ChannelInput): UserChange {
  if (input.is_verified !== undefined && caller.access === 'client') {
    throw plain(403, 'is_verified is for servers; clients verify with the code from the mail.');
  }
  return {
    ...(input.value === undefined ? {} : { primaryEmail: normalEmail(input.value) }),
    ...(input.used_for_auth === undefined ? {} : { primaryEmailAuthEnabled: input.used_for_auth }),
    ...(input.is_verified === undefined ? {} : { primaryEmailVerified: input.is_verified }),
  };
}

function channelsOf(user: UserRow) {
  if (user.primaryEmail === null) return [];
  return [
    {
      id: user.emailChannelId,
      user_id: user.id,
      value: user.primaryEmail,
      type: 'email',
      used_for_auth: user.primaryEmailAuthEnabled,
      is_verified: user.primaryEmailVerified,
      is_primary: true,
    },
  ];
}

function teamView(team: { id: string; displayName: string; createdAt: Date }) {
  return {
    id: team.id,
    display_name: team.displayName,
    profile_image_url: null,
    client_metadata: null,
    client_read_only_metadata: null,
    created_at_millis: team.createdAt.getTime(),
  };
}
