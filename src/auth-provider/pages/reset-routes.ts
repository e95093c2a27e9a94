/** Forgotten passwords of accounts at the provider's own pages. Without a mail server the operator has the link. */
import { Type } from '@fastify/type-provider-typebox';
import type { FastifyReply } from 'fastify';
import { requireCode, resetPassword, sendResetCode } from '../core/codes.ts';
import { internalProjectId } from '../core/internal-project.ts';
import type { Limits } from '../core/limits.ts';
import type { AuthProviderParts } from '../core/parts.ts';
import { passwordLengthMax, passwordLengthMin } from '../core/passwords.ts';
import { normalEmail } from '../core/user-input.ts';
import type { AuthProviderApp } from '../http/app-type.ts';
import { AuthProviderError, plain } from '../http/errors.ts';
import { closed } from '../http/schemas.ts';
import { guarded } from '../routes/access.ts';
import { selectProject } from '../statements/projects.ts';
import { hidden } from './account-views.ts';
import { type Html, html } from './html.ts';
import { sendHtml } from './layout.ts';
import { requireOwnForm, visitorOf } from './visitor.ts';

const Text = Type.String({ maxLength: 1000 });
const ForgotForm = Type.Object({ mark: Text, email: Type.String({ maxLength: 300 }) }, closed);
const ResetForm = Type.Object({ mark: Text, code: Type.String({ maxLength: 200 }), password: Text }, closed);
const CodeQuery = Type.Object({ code: Type.Optional(Type.String({ maxLength: 200 })) });

const open = guarded('open');

export function resetRoutes(app: AuthProviderApp, parts: AuthProviderParts, limits: Limits): void {
  app.get('/forgot-password', open, async (request, reply) => {
    const { mark } = await visitorOf(parts, request, reply);
    return sendHtml(reply, { title: 'Forgotten password', body: forgotView(mark) });
  });

  app.post('/forgot-password', { ...open, schema: { ...open.schema, body: ForgotForm } }, async (request, reply) => {
    const { email, mark } = request.body;
    requireOwnForm(request, await visitorOf(parts, request, reply), mark);
    limits.address('code', request.ip);
    limits.mail(`${internalProjectId} ${normalEmail(email)}`);
    const project = await selectProject(parts.database.sql, internalProjectId);
    if (project === undefined) throw plain(404, 'This provider has no accounts.');
    await sendResetCode(parts, project, email, `${parts.baseUrl}/reset-password`);
    return sendHtml(reply, {
      title: 'Look at your mails',
      body: html`<h1>Look at your mails</h1><p class="lead">If there is an account with that address, a link to a new
password is on its way to it.</p>`,
    });
  });

  app.get(
    '/reset-password',
    { ...open, schema: { ...open.schema, querystring: CodeQuery } },
    async (request, reply) => {
      const { mark } = await visitorOf(parts, request, reply);
      const { code = '' } = request.query;
      limits.address('code', request.ip);
      await requireCode(parts, 'password_reset', code, internalProjectId);
      return sendHtml(reply, { title: 'New password', body: resetView(mark, code) });
    },
  );

  app.post('/reset-password', { ...open, schema: { ...open.schema, body: ResetForm } }, async (request, reply) => {
    const { code, mark, password } = request.body;
    requireOwnForm(request, await visitorOf(parts, request, reply), mark);
    limits.address('code', request.ip);
    try {
      await resetPassword(parts, internalProjectId, code, password);
    } catch (error) {
      return showAgain(reply, error, mark, code);
    }
    return reply.redirect('/stack/sign-in', 303);
  });
}

/** An unsuitable password can be corrected; the page for failures shows anything else. */
function showAgain(reply: FastifyReply, error: unknown, mark: string, code: string): FastifyReply {
  if (!(error instanceof AuthProviderError) || error.code === null || !error.code.startsWith('PASSWORD_')) throw error;
  const body = html`<p class="note bad" role="alert">${error.message}</p>${resetView(mark, code)}`;
  return sendHtml(reply, { title: 'New password', status: error.status, body });
}

function forgotView(mark: string): Html {
  return html`<h1>Forgotten password</h1><p class="lead">Get a link to a new one by mail.</p>
<section class="card"><form method="post" action="/stack/forgot-password">${hidden({ mark })}
<label>E-mail<input type="email" name="email" required maxlength="256" autocomplete="username"></label>
<button class="button full">Send the link</button></form></section>`;
}

function resetView(mark: string, code: string): Html {
  return html`<h1>New password</h1><p class="lead">You are signed out everywhere when it is set.</p>
<section class="card"><form method="post" action="/stack/reset-password">${hidden({ mark, code })}
<label>Password<input type="password" name="password" required minlength="${passwordLengthMin}"
maxlength="${passwordLengthMax}" autocomplete="new-password"></label>
<button class="button full">Set the password</button></form></section>`;
}
