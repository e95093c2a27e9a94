/** Signing in to the provider's own pages, as a user of its project `internal`. */
import { Type } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { internalProjectId } from '../core/internal-project.ts';
import type { Limits } from '../core/limits.ts';
import type { AuthProviderParts } from '../core/parts.ts';
import { signIn, signUp } from '../core/sign-in.ts';
import type { AuthProviderApp } from '../http/app-type.ts';
import { AuthProviderError, known } from '../http/errors.ts';
import { closed } from '../http/schemas.ts';
import { guarded } from '../routes/access.ts';
import { selectProject } from '../statements/projects.ts';
import type { UserRow } from '../statements/users.ts';
import { accountView, whoView } from './account-views.ts';
import { html } from './html.ts';
import { sendHtml } from './layout.ts';
import { requireOwnForm, signInVisitor, signOutVisitor, type Visitor, visitorOf } from './visitor.ts';

const Text = Type.String({ maxLength: 1000 });
const Optional = Type.Optional(Text);
const SignInForm = Type.Object({ mark: Text, next: Optional, email: Text, password: Text }, closed);
const SignUpForm = Type.Object({ mark: Text, next: Optional, email: Text, password: Text, name: Optional }, closed);
const OutForm = Type.Object({ mark: Text, next: Optional }, closed);
const NextQuery = Type.Object({ next: Optional });

const open = guarded('open');
const home = '/stack/dashboard';

export function accountRoutes(app: AuthProviderApp, parts: AuthProviderParts, limits: Limits): void {
  app.get('/', open, async (_request, reply) => reply.redirect(home, 303));

  app.get('/sign-in', { ...open, schema: { ...open.schema, querystring: NextQuery } }, async (request, reply) => {
    const visitor = await visitorOf(parts, request, reply);
    const next = safeNext(request.query.next);
    if (visitor.user !== null) return reply.redirect(next, 303);
    return showForms(reply, visitor, { next });
  });

  app.post('/sign-in', { ...open, schema: { ...open.schema, body: SignInForm } }, async (request, reply) => {
    const { email, password } = request.body;
    return enter(request, reply, { ...request.body, isNew: false }, () =>
      signIn(parts, limits, internalProjectId, { email, password, from: request.ip }),
    );
  });

  app.post('/sign-up', { ...open, schema: { ...open.schema, body: SignUpForm } }, async (request, reply) => {
    const { email, password, name = '' } = request.body;
    return enter(request, reply, { ...request.body, isNew: true }, async () => {
      limits.address('signUp', request.ip);
      const project = await selectProject(parts.database.sql, internalProjectId);
      if (project === undefined) throw known('SIGN_UP_NOT_ENABLED', 'This provider takes no new accounts.');
      const displayName = name.trim().slice(0, 256);
      return signUp(parts, project, { email, password, ...(displayName === '' ? {} : { displayName }) });
    });
  });

  app.post('/sign-out', { ...open, schema: { ...open.schema, body: OutForm } }, async (request, reply) => {
    const visitor = await visitorOf(parts, request, reply);
    requireOwnForm(request, visitor, request.body.mark);
    await signOutVisitor(parts, reply, visitor);
    return reply.redirect(safeNext(request.body.next), 303);
  });

  async function enter(
    request: FastifyRequest,
    reply: FastifyReply,
    form: { mark: string; next?: string; email: string; isNew: boolean },
    prove: () => Promise<UserRow>,
  ): Promise<FastifyReply> {
    const visitor = await visitorOf(parts, request, reply);
    requireOwnForm(request, visitor, form.mark);
    const next = safeNext(form.next);
    try {
      await signInVisitor(parts, reply, await prove());
    } catch (error) {
      if (!(error instanceof AuthProviderError) || error.status >= 500) throw error;
      if (error.retryAfterSeconds !== undefined) reply.header('retry-after', String(error.retryAfterSeconds));
      const { status, message } = error;
      return showForms(reply, visitor, { next, error: message, email: form.email, isNew: form.isNew }, status);
    }
    return reply.redirect(next, 303);
  }
}

interface FormState {
  readonly next: string;
  readonly error?: string;
  readonly email?: string;
  readonly isNew?: boolean;
}

function showForms(reply: FastifyReply, visitor: Visitor, state: FormState, status = 200): FastifyReply {
  const isTransfer = state.next.includes('/transfer/confirm');
  return sendHtml(reply, {
    title: 'Sign in',
    status,
    who: whoView(visitor),
    body: html`<h1>Sign in</h1>
<p class="lead">${
      isTransfer
        ? 'Choose the account that is to own the project.'
        : 'See and manage the auth projects that belong to you.'
    }</p>${accountView({ visitor, ...state })}`,
  });
}

/** Only our own pages: a link must not lead elsewhere after the user has entered a password here. */
export function safeNext(next: string | undefined): string {
  return next !== undefined && /^\/stack\/[\w/?=.-]*$/.test(next) && !next.includes('//') ? next : home;
}
