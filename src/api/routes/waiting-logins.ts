/**
 * The console's page for a client that waits to be let in. By the sign-in of the console alone, never by a key: a
 * person has to see who waits. The token is in the body, so that no log of addresses holds it.
 */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Caller } from '../../core/access.ts';
import { runCommand } from '../../core/command.ts';
import { readScope } from '../../core/context.ts';
import { requireScope } from '../../core/key-scope.ts';
import { confirmWaitingLogin, getWaitingLogin, refuseWaitingLogin } from '../../core/waiting-login.ts';
import { CatnapError } from '../../lib/errors.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import type { Access } from '../plugins/auth.ts';
import { closed, identifier, idOf } from '../schemas/common.ts';
import { WaitingLogin } from '../schemas/unversioned.ts';
import { loginChoice, waitingLoginView } from '../views/waiting-login.ts';

const token = Type.String({ minLength: 1, maxLength: 100, description: 'What the link holds behind its #.' });
const ShowBody = Type.Object({ token }, closed);
const ConfirmBody = Type.Object(
  {
    token,
    project_id: idOf('project'),
    endpoint_id: idOf('compute'),
    role_name: identifier('Role that the client gets.'),
    database_name: identifier('Database that the client gets.'),
  },
  closed,
);

const path = '/console/logins';
const config = { isPublic: true };
const response = { 200: WaitingLogin };

export function waitingLoginRoutes(app: App, parts: ApiParts, access: Access): void {
  const signedIn = async (request: FastifyRequest): Promise<Caller> => {
    // A key in a header is none of a person's; the cookie counts only for requests of our own pages.
    const caller = request.headers.authorization === undefined ? await access.findSignedIn(request) : undefined;
    if (caller === undefined) throw new CatnapError('unauthenticated', 'sign in to the console first');
    // The client is let in as a role of any branch, which a key of scope `branches` may not choose.
    if (caller.scope !== 'sql') requireScope(caller, 'everything');
    return caller;
  };

  app.post(`${path}/show`, { config, schema: { hide: true, body: ShowBody, response } }, async (request) => {
    await signedIn(request);
    return waitingLoginView(await getWaitingLogin(readScope(parts.core), request.body.token));
  });

  app.post(`${path}/confirm`, { config, schema: { hide: true, body: ConfirmBody, response } }, async (request) => {
    const caller = await signedIn(request);
    return runCommand(parts.core, null, async (scope) =>
      waitingLoginView(await confirmWaitingLogin(scope, caller, request.body.token, loginChoice(request.body))),
    );
  });

  app.post(`${path}/refuse`, { config, schema: { hide: true, body: ShowBody, response } }, async (request) => {
    const caller = await signedIn(request);
    return runCommand(parts.core, null, async (scope) =>
      waitingLoginView(await refuseWaitingLogin(scope, caller, request.body.token)),
    );
  });
}
