/** E-mail and password: sign-up, sign-in, change, reset. */
import { Type } from '@fastify/type-provider-typebox';
import { requireTrustedUrl } from '../core/domains.ts';
import type { Limits } from '../core/limits.ts';
import type { AuthProviderParts } from '../core/parts.ts';
import { hashPassword, isPassword, requireGoodPassword } from '../core/passwords.ts';
import { startSession, type Tokens } from '../core/sessions.ts';
import { signIn, signUp } from '../core/sign-in.ts';
import { changeUser } from '../core/user-commands.ts';
import type { AuthProviderApp } from '../http/app-type.ts';
import { known, plain } from '../http/errors.ts';
import { closed, WebUrl } from '../http/schemas.ts';
import { selectDomains } from '../statements/domains.ts';
import type { ProjectRow } from '../statements/projects.ts';
import { callerOf, guarded, requireSignedIn } from './access.ts';

/** Limited by the body's size; rules about passwords have errors of their own. */
const Password = Type.String({ maxLength: 1000 });
const Address = Type.String({ maxLength: 300 });
const ignored = Type.Optional(Type.Unknown());

const SignUpBody = Type.Object(
  {
    email: Address,
    password: Password,
    verification_callback_url: Type.Optional(WebUrl),
    bot_challenge_token: ignored,
    bot_challenge_phase: ignored,
    bot_challenge_unavailable: ignored,
  },
  closed,
);
const SignInBody = Type.Object({ email: Address, password: Password }, closed);
const SetBody = Type.Object({ password: Password }, closed);
const UpdateBody = Type.Object({ old_password: Password, new_password: Password }, closed);

const client = guarded('client');

export function passwordRoutes(app: AuthProviderApp, parts: AuthProviderParts, limits: Limits): void {
  app.post('/auth/password/sign-up', { ...client, schema: { ...client.schema, body: SignUpBody } }, async (request) => {
    const { project } = callerOf(request);
    const { email, password, verification_callback_url: callbackUrl } = request.body;
    requirePasswordSignIn(project);
    if (callbackUrl !== undefined) {
      requireTrustedUrl(project, await selectDomains(parts.database.sql, project.id), callbackUrl);
    }
    limits.address('signUp', request.ip);
    const user = await signUp(parts, project, { email, password, callbackUrl });
    return tokensView(user.id, await startSession(parts, user, { from: request.ip }));
  });

  app.post('/auth/password/sign-in', { ...client, schema: { ...client.schema, body: SignInBody } }, async (request) => {
    const { project } = callerOf(request);
    requirePasswordSignIn(project);
    const user = await signIn(parts, limits, project.id, { ...request.body, from: request.ip });
    return tokensView(user.id, await startSession(parts, user, { from: request.ip }));
  });

  app.post('/auth/password/set', { ...client, schema: { ...client.schema, body: SetBody } }, async (request) => {
    const caller = callerOf(request);
    const user = await requireSignedIn(parts, caller);
    requirePasswordSignIn(caller.project);
    requireGoodPassword(request.body.password);
    const passwordHash = await hashPassword(request.body.password);
    await changeUser(parts, caller.project.id, user.id, (before) => {
      if (before.passwordHash !== null) throw plain(400, 'The user has a password; change it in place of setting one.');
      return { passwordHash, ...(before.primaryEmail === null ? {} : { primaryEmailAuthEnabled: true }) };
    });
    return { success: true };
  });

  app.post('/auth/password/update', { ...client, schema: { ...client.schema, body: UpdateBody } }, async (request) => {
    const caller = callerOf(request);
    const user = await requireSignedIn(parts, caller);
    requirePasswordSignIn(caller.project);
    if (user.passwordHash === null) throw known('USER_DOES_NOT_HAVE_PASSWORD', 'The user has no password.');
    requireGoodPassword(request.body.new_password);
    const attempt = limits.guess(`${caller.project.id} ${user.id}`, request.ip);
    if (!(await isPassword(user.passwordHash, request.body.old_password))) {
      throw known('PASSWORD_CONFIRMATION_MISMATCH', 'The old password is not right.');
    }
    attempt.succeeded();
    const passwordHash = await hashPassword(request.body.new_password);
    // Signs out anyone else who knew the old password.
    const options = { endSessionsExcept: caller.token?.sessionId ?? null };
    await changeUser(parts, caller.project.id, user.id, { passwordHash }, options);
    return { success: true };
  });

  app.post('/auth/anonymous/sign-up', client, async () => {
    throw known('ANONYMOUS_ACCOUNTS_NOT_ENABLED', 'This provider has no anonymous accounts.');
  });
}

export function requirePasswordSignIn(project: ProjectRow): void {
  if (project.credentialEnabled) return;
  throw known('PASSWORD_AUTHENTICATION_NOT_ENABLED', 'This project does not use passwords.');
}

function tokensView(userId: string, tokens: Tokens) {
  return { access_token: tokens.accessToken, refresh_token: tokens.refreshToken, user_id: userId };
}
