/** Signing in to the console and out of it. The API itself is then reached with the cookie that this sets. */
import { Type } from 'typebox';
import { runCommand } from '../../core/command.ts';
import {
  findConsoleSession,
  makeConsoleLink,
  signInWithKey,
  signInWithLink,
  signOut,
} from '../../core/console-session.ts';
import { readScope } from '../../core/context.ts';
import { CatnapError, invalid } from '../../lib/errors.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { type Access, authenticateToken, bearerToken, tokenLengthMax } from '../plugins/auth.ts';
import { clearSessionCookie, isFromConsole, sessionTokenOf, setSessionCookie } from '../plugins/console-cookie.ts';
import { closed } from '../schemas/common.ts';
import { ConsoleLink, ConsoleSession } from '../schemas/unversioned.ts';

const SignInBody = Type.Object(
  {
    api_key: Type.Optional(Type.String({ minLength: 1, maxLength: tokenLengthMax })),
    link: Type.Optional(Type.String({ minLength: 1, maxLength: tokenLengthMax })),
  },
  closed,
);

const path = '/console/session';
const response = { 200: ConsoleSession };
const open = { config: { isPublic: true }, schema: { hide: true, response } };

export function consoleSessionRoutes(app: App, parts: ApiParts, access: Access): void {
  const { config } = parts;

  app.get(path, open, async (request) => {
    const token = sessionTokenOf(request, config);
    const session = token === undefined ? undefined : await findConsoleSession(readScope(parts.core), token);
    if (session === undefined) return { signed_in: false };
    const { kind, scope, keyId, projectId } = session.caller;
    return { signed_in: true, key: { id: keyId, name: session.keyName, kind, project_id: projectId, scope } };
  });

  app.post(
    path,
    { config: open.config, schema: { hide: true, body: SignInBody, response } },
    async (request, reply) => {
      if (!isFromConsole(request, config)) throw new CatnapError('forbidden', 'only the console signs in here');
      const { api_key: apiKey, link } = request.body;
      if ((apiKey === undefined) === (link === undefined)) throw invalid('invalid request: body needs api_key or link');
      const secret = apiKey ?? link ?? '';
      // Links are guarded like keys: both are guesses until they are found.
      access.guard.check(request.ip, secret);
      if (apiKey !== undefined && (await authenticateToken(request, apiKey, access)) === undefined) throw wrongKey();
      const made = await runCommand(parts.core, null, async (scope) => ({
        token: apiKey === undefined ? await signInWithLink(scope, secret) : await signInWithKey(scope, secret),
      }));
      if (made.token === undefined) {
        access.guard.failed(request.ip);
        throw apiKey === undefined ? spentLink() : wrongKey();
      }
      setSessionCookie(reply, config, made.token);
      return { signed_in: true };
    },
  );

  // By a key alone: a page that is signed in needs no link, and what runs in it could hand one on.
  const linkSchema = { hide: true, response: { 200: ConsoleLink } };
  app.post('/console/link', { config: open.config, schema: linkSchema }, async (request) => {
    const key = bearerToken(request.headers.authorization);
    if (key === undefined || (await authenticateToken(request, key, access)) === undefined) throw wrongKey();
    const made = await runCommand(parts.core, null, async (scope) => ({ link: await makeConsoleLink(scope, key) }));
    if (made.link === undefined) throw wrongKey();
    return { link: made.link };
  });

  app.delete(path, open, async (request, reply) => {
    if (!isFromConsole(request, config)) throw new CatnapError('forbidden', 'only the console signs out here');
    const token = sessionTokenOf(request, config);
    if (token !== undefined) {
      await runCommand(parts.core, null, async (scope) => {
        await signOut(scope, token);
        return {};
      });
    }
    clearSessionCookie(reply, config);
    return { signed_in: false };
  });
}

const wrongKey = () => new CatnapError('unauthenticated', 'this key does not work here');
const spentLink = () => new CatnapError('unauthenticated', 'this link was used before or is too old');
