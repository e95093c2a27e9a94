/** The page behind a transfer link: sign in, check the account, confirm. Only the last step uses the code up. */
import { Type } from '@fastify/type-provider-typebox';
import type { FastifyReply } from 'fastify';
import type { AuthProviderParts } from '../core/parts.ts';
import { confirmTransfer, requireTransferCode } from '../core/projects.ts';
import type { AuthProviderApp } from '../http/app-type.ts';
import { AuthProviderError } from '../http/errors.ts';
import { closed } from '../http/schemas.ts';
import { guarded } from '../routes/access.ts';
import { type ProjectRow, selectProject } from '../statements/projects.ts';
import { accountTile, accountView, hidden, nameOf, whoView } from './account-views.ts';
import { type Html, html } from './html.ts';
import { sendHtml } from './layout.ts';
import { requireOwnForm, type Visitor, visitorOf } from './visitor.ts';

const Code = Type.String({ maxLength: 200 });
const CodeQuery = Type.Object({ code: Type.Optional(Code) });
const ConfirmForm = Type.Object({ mark: Type.String({ maxLength: 1000 }), code: Code }, closed);

const open = guarded('open');
const path = '/integrations/neon/projects/transfer/confirm';

export function transferPageRoutes(app: AuthProviderApp, parts: AuthProviderParts): void {
  app.get(path, { ...open, schema: { ...open.schema, querystring: CodeQuery } }, async (request, reply) => {
    const visitor = await visitorOf(parts, request, reply);
    const { code = '' } = request.query;
    return whenGood(reply, visitor, async () => {
      const project = await projectOfCode(parts, code);
      const next = `/stack${path}?code=${code}`;
      return sendHtml(reply, {
        title: 'Take over a project',
        who: whoView(visitor, next),
        body: visitor.user === null ? askWho(project, visitor, next) : askConfirmation(project, visitor, code, next),
      });
    });
  });

  app.post(path, { ...open, schema: { ...open.schema, body: ConfirmForm } }, async (request, reply) => {
    const visitor = await visitorOf(parts, request, reply);
    const { code, mark } = request.body;
    requireOwnForm(request, visitor, mark);
    const { user } = visitor;
    // Signed out in another window meanwhile.
    if (user === null) return reply.redirect(`/stack${path}?code=${encodeURIComponent(code)}`, 303);
    return whenGood(reply, visitor, async () => {
      const project = await confirmTransfer(parts, code, user);
      return sendHtml(reply, {
        title: 'It is yours',
        who: whoView(visitor),
        body: html`<h1>${project.displayName} is yours</h1>
<p class="lead">It belongs to ${nameOf(user)} from now on. Keys, users and the copy of the users in your database go on as before.</p>
<section class="card"><p class="note good" role="status">Ownership was transferred.</p>
<a class="button full" href="/stack/dashboard/projects/${project.id}">Open the project</a></section>`,
      });
    });
  });
}

async function projectOfCode(parts: AuthProviderParts, code: string): Promise<ProjectRow> {
  const row = await requireTransferCode(parts, code);
  const project = await selectProject(parts.database.sql, row.projectId);
  if (project === undefined || project.provisionedBy === null)
    throw new AuthProviderError(400, null, 'transferred already');
  return project;
}

const intro = (project: ProjectRow) => html`<h1>Take over ${project.displayName}</h1>
<p class="lead">This auth project is managed by Catnap. After the transfer it belongs to you; Catnap goes on to use it.</p>`;

function askWho(project: ProjectRow, visitor: Visitor, next: string): Html {
  return html`${intro(project)}
<p class="note">First say who you are. The account you sign in with is the one that you can then choose as the owner.</p>
${accountView({ visitor, next })}`;
}

function askConfirmation(project: ProjectRow, visitor: Visitor, code: string, next: string): Html {
  const { user, mark } = visitor;
  if (user === null) return html``;
  return html`${intro(project)}
<section class="card"><h2>Which account receives it?</h2><p class="lead">Ownership is transferred once; it cannot be sent back.</p>
${accountTile(user)}
<form method="post" action="/stack${path}">${hidden({ mark, code })}<button class="button full">Transfer to this account</button></form>
<div class="or">or</div>
<form method="post" action="/stack/sign-out">${hidden({ mark, next })}<button class="button quiet full">Use another account</button></form>
</section>`;
}

const refusals: Readonly<Record<string, readonly [title: string, text: string]>> = {
  VERIFICATION_CODE_NOT_FOUND: [
    'This link is not valid',
    'It may be incomplete. Open it again from where you got it, or ask Catnap for a new one.',
  ],
  VERIFICATION_CODE_EXPIRED: ['This link has expired', 'It was good for one hour. Ask Catnap for a new one.'],
  VERIFICATION_CODE_ALREADY_USED: [
    'This link was used already',
    'The project has been transferred with it. If that was you, it is in your dashboard.',
  ],
};
const transferred = [
  'This project was transferred already',
  'A project changes hands once. If it is yours, it is in your dashboard.',
] as const;

/** A bad code gets a page of its own that explains the problem; nothing has changed then. */
async function whenGood(
  reply: FastifyReply,
  visitor: Visitor,
  work: () => Promise<FastifyReply>,
): Promise<FastifyReply> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof AuthProviderError) || error.status >= 500 || error.status === 403) throw error;
    const [title, text] = refusals[error.code ?? ''] ?? transferred;
    return sendHtml(reply, {
      title,
      status: error.status,
      who: whoView(visitor),
      body: html`<h1>${title}</h1><p class="lead">${text}</p>
<section class="card"><p class="note">Nothing was changed.</p><a class="button quiet full" href="/stack/dashboard">Go to the dashboard</a></section>`,
    });
  }
}
