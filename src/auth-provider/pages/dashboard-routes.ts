/** A small dashboard for the people who own projects. Other people's projects are reported as missing. */
import { Type } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { requireDomain } from '../core/domains.ts';
import { farFuture, type MadeKeySet, makeKeySet } from '../core/key-sets.ts';
import type { AuthProviderParts } from '../core/parts.ts';
import { keySet, rotateSigningKeys } from '../core/signing.ts';
import type { AuthProviderApp } from '../http/app-type.ts';
import { AuthProviderError, plain } from '../http/errors.ts';
import { closed, Uuid } from '../http/schemas.ts';
import { guarded } from '../routes/access.ts';
import { domainsMax } from '../routes/domains.ts';
import { deleteDomain, insertDomain, selectDomains } from '../statements/domains.ts';
import { selectKeySets, updateKeySet } from '../statements/key-sets.ts';
import { type ProjectRow, selectProjectsOfUser } from '../statements/projects.ts';
import { selectPublishedKeys } from '../statements/signing-keys.ts';
import { countUsers, selectUsers } from '../statements/users.ts';
import { whoView } from './account-views.ts';
import { projectsView, projectView } from './dashboard-views.ts';
import { nothingHere } from './failures.ts';
import { sendHtml } from './layout.ts';
import { requireOwnForm, type Visitor, visitorOf } from './visitor.ts';

const Mark = Type.String({ maxLength: 1000 });
const Params = Type.Object({ id: Uuid });
const SearchQuery = Type.Object({ search: Type.Optional(Type.String({ maxLength: 200 })) });
const MarkForm = Type.Object({ mark: Mark }, closed);
const KeysForm = Type.Object({ mark: Mark, description: Type.String({ minLength: 1, maxLength: 200 }) }, closed);
const RevokeForm = Type.Object({ mark: Mark, id: Uuid }, closed);
const DomainForm = Type.Object({ mark: Mark, domain: Type.String({ maxLength: 300 }) }, closed);

const open = guarded('open');
const path = '/dashboard/projects/:id';
const usersShown = 50;

/** The options of a route that takes a form. */
const takes = <Body extends ReturnType<typeof Type.Object>>(body: Body) => ({
  ...open,
  schema: { ...open.schema, params: Params, body },
});

export function dashboardRoutes(app: AuthProviderApp, parts: AuthProviderParts): void {
  const { sql } = parts.database;

  app.get('/dashboard', open, async (request, reply) => {
    const visitor = await visitorOf(parts, request, reply);
    if (visitor.user === null) return reply.redirect('/stack/sign-in', 303);
    const body = projectsView(await selectProjectsOfUser(sql, visitor.user.id));
    return sendHtml(reply, { title: 'Your projects', who: whoView(visitor), isWide: true, body });
  });

  const page = { ...open, schema: { ...open.schema, params: Params, querystring: SearchQuery } };
  app.get(path, page, async (request, reply) => {
    const visitor = await visitorOf(parts, request, reply);
    if (visitor.user === null) return reply.redirect(`/stack/sign-in?next=${request.url.split('?')[0]}`, 303);
    const project = await requireOwned(parts, visitor, request.params.id);
    return showProject(parts, reply, visitor, project, { search: request.query.search ?? '' });
  });

  app.post(`${path}/make-keys`, takes(KeysForm), async (request, reply) => {
    const { visitor, project } = await requireAction(parts, request, reply, request.params.id, request.body.mark);
    const made = await makeKeySet(sql, {
      projectId: project.id,
      description: request.body.description,
      expiresAt: farFuture(parts.clock.now()),
      publishable: true,
      secret: true,
      admin: false,
    });
    return showProject(parts, reply, visitor, project, { made });
  });

  app.post(`${path}/revoke-keys`, takes(RevokeForm), async (request, reply) => {
    const { project } = await requireAction(parts, request, reply, request.params.id, request.body.mark);
    const revoked = await updateKeySet(sql, project.id, request.body.id, { revokedAt: parts.clock.now() });
    if (revoked === undefined) throw nothingHere();
    return back(reply, project, 'keys');
  });

  app.post(`${path}/add-domain`, takes(DomainForm), async (request, reply) => {
    const { visitor, project } = await requireAction(parts, request, reply, request.params.id, request.body.mark);
    try {
      // An origin copied from the address bar ends in a slash.
      const domain = requireDomain(request.body.domain.trim().replace(/\/$/, ''), 'The domain');
      const hasRoom = await insertDomain(sql, { projectId: project.id, domain, domainsMax });
      if (!hasRoom) throw plain(400, `A project has ${domainsMax} trusted domains at most.`);
    } catch (error) {
      if (!(error instanceof AuthProviderError)) throw error;
      return showProject(parts, reply, visitor, project, { error: error.message }, error.status);
    }
    return back(reply, project, 'domains');
  });

  app.post(`${path}/remove-domain`, takes(DomainForm), async (request, reply) => {
    const { project } = await requireAction(parts, request, reply, request.params.id, request.body.mark);
    await deleteDomain(sql, project.id, request.body.domain);
    return back(reply, project, 'domains');
  });

  app.post(`${path}/rotate-signing-key`, takes(MarkForm), async (request, reply) => {
    const { project } = await requireAction(parts, request, reply, request.params.id, request.body.mark);
    await rotateSigningKeys(parts, project.id, { isImmediate: false });
    return back(reply, project, 'signing');
  });
}

async function requireOwned(parts: AuthProviderParts, visitor: Visitor, id: string): Promise<ProjectRow> {
  const owned = visitor.user === null ? [] : await selectProjectsOfUser(parts.database.sql, visitor.user.id);
  const project = owned.find((candidate) => candidate.id === id.toLowerCase());
  if (project === undefined) throw nothingHere();
  return project;
}

async function requireAction(
  parts: AuthProviderParts,
  request: FastifyRequest,
  reply: FastifyReply,
  id: string,
  mark: string,
): Promise<{ readonly visitor: Visitor; readonly project: ProjectRow }> {
  const visitor = await visitorOf(parts, request, reply);
  requireOwnForm(request, visitor, mark);
  return { visitor, project: await requireOwned(parts, visitor, id) };
}

async function showProject(
  parts: AuthProviderParts,
  reply: FastifyReply,
  visitor: Visitor,
  project: ProjectRow,
  shown: { readonly search?: string; readonly made?: MadeKeySet; readonly error?: string },
  status = 200,
): Promise<FastifyReply> {
  const { sql } = parts.database;
  const search = shown.search ?? '';
  const now = parts.clock.now();
  // Makes the first key, so that there is one to show.
  await keySet(parts, project.id, ['plain']);
  const body = projectView({
    project,
    mark: visitor.mark,
    now,
    baseUrl: parts.baseUrl,
    ...shown,
    search,
    users: await selectUsers(sql, {
      projectId: project.id,
      limit: usersShown,
      isDescending: true,
      orderBy: 'signed_up_at',
      text: search === '' ? undefined : search,
      includesAnonymous: true,
      includesRestricted: true,
      onlyAnonymous: false,
    }),
    userCount: await countUsers(sql, project.id),
    keySets: await selectKeySets(sql, project.id),
    domains: await selectDomains(sql, project.id),
    signingKeys: await selectPublishedKeys(sql, project.id, now),
  });
  return sendHtml(reply, { title: project.displayName, who: whoView(visitor), isWide: true, status, body });
}

const back = (reply: FastifyReply, project: ProjectRow, section: string) =>
  reply.redirect(`/stack/dashboard/projects/${project.id}#${section}`, 303);
