/** Projects: provisioned by a control plane, read and changed by their administrators, read by their clients. */
import { Type } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { requireDomain } from '../core/domains.ts';
import { internalProjectId, projectIdFromWire } from '../core/internal-project.ts';
import type { AuthProviderParts } from '../core/parts.ts';
import { provisionProject } from '../core/projects.ts';
import { keySet, keySetSeconds, rotateSigningKeys } from '../core/signing.ts';
import { adminProjectView, clientProjectView } from '../core/views.ts';
import type { AuthProviderApp } from '../http/app-type.ts';
import { known, plain } from '../http/errors.ts';
import { closed, nullable } from '../http/schemas.ts';
import { replaceDomains, selectDomains } from '../statements/domains.ts';
import { selectOauthProviders } from '../statements/oauth-providers.ts';
import {
  deleteProject,
  type ProjectChange,
  type ProjectRow,
  selectProject,
  updateProject,
} from '../statements/projects.ts';
import type { Audience } from '../statements/signing-keys.ts';
import { providerIdsOf } from '../third-party/identity-providers.ts';
import { callerOf, clientOf, guarded } from './access.ts';
import { domainsMax } from './domains.ts';

const ConnectionString = Type.Object(
  {
    branch_id: Type.String({ minLength: 1, maxLength: 300 }),
    connection_string: Type.String({ minLength: 1, maxLength: 5000 }),
  },
  closed,
);
const NewProject = Type.Object(
  {
    display_name: Type.String({ minLength: 1, maxLength: 500 }),
    connection_strings: Type.Optional(Type.Array(ConnectionString, { maxItems: 100 })),
  },
  closed,
);

const flag = Type.Optional(Type.Boolean());
/** What this provider does not have can be switched off, not on. */
const off = Type.Optional(Type.Literal(false));
const ProjectConfig = Type.Object(
  {
    allow_localhost: flag,
    credential_enabled: flag,
    sign_up_enabled: flag,
    client_user_deletion_enabled: flag,
    require_publishable_client_key: flag,
    magic_link_enabled: off,
    passkey_enabled: off,
    client_team_creation_enabled: off,
    create_team_on_sign_up: off,
    allow_user_api_keys: off,
    allow_team_api_keys: off,
    domains: Type.Optional(
      Type.Array(
        Type.Object({ domain: Type.String({ maxLength: 300 }), handler_path: Type.String({ maxLength: 300 }) }, closed),
        { maxItems: domainsMax },
      ),
    ),
  },
  closed,
);
const ProjectBody = Type.Object(
  {
    display_name: Type.Optional(Type.String({ minLength: 1, maxLength: 500 })),
    description: Type.Optional(nullable(Type.String({ maxLength: 5000 }))),
    is_production_mode: flag,
    config: Type.Optional(ProjectConfig),
  },
  closed,
);

/** An addition of this provider: a control plane that did not get its answer may repeat the request. */
function attemptOf({ headers }: FastifyRequest): string | null {
  const key = headers['idempotency-key'];
  return typeof key === 'string' && key.length > 0 && key.length <= 255 ? key : null;
}

const integration = guarded('integration');
const admin = guarded('admin');
const open = guarded('open');

export function projectRoutes(app: AuthProviderApp, parts: AuthProviderParts): void {
  const { sql, transaction } = parts.database;
  const usableProviders = async (projectId: string) => {
    const ids = providerIdsOf(parts.oauthIssuers);
    return (await selectOauthProviders(sql, projectId)).filter(({ id }) => ids.includes(id));
  };
  const adminView = async (project: ProjectRow) =>
    adminProjectView(project, await selectDomains(sql, project.id), await usableProviders(project.id));

  for (const family of ['neon', 'custom']) {
    const path = `/integrations/${family}/projects/provision`;
    app.post(path, { ...integration, schema: { ...integration.schema, body: NewProject } }, async (request) => {
      const { display_name: displayName, connection_strings: strings = [] } = request.body;
      if (strings.length > 0)
        throw plain(400, 'connection_strings: this provider keeps its users in its own database.');
      const made = await provisionProject(parts, {
        displayName,
        clientId: clientOf(request),
        attempt: attemptOf(request),
      });
      return { project_id: made.projectId, super_secret_admin_key: made.adminKey };
    });
  }

  for (const path of ['/integrations/neon/projects/current', '/internal/projects/current']) {
    app.get(path, admin, async (request) => adminView(callerOf(request).project));
    app.patch(path, { ...admin, schema: { ...admin.schema, body: ProjectBody } }, async (request) => {
      const { project } = callerOf(request);
      const { body } = request;
      const domains = body.config?.domains?.map((entry, at) => ({
        domain: requireDomain(entry.domain, `body.config.domains[${at}].domain`),
        handlerPath: entry.handler_path,
      }));
      const changed = await transaction(async (tx) => {
        if (domains !== undefined) await replaceDomains(tx, project.id, domains);
        return updateProject(tx, project.id, changeOf(body));
      });
      if (changed === undefined) throw gone(project.id);
      return adminView(changed);
    });
  }

  app.delete('/internal/projects/current', admin, async (request) => {
    const { project } = callerOf(request);
    if (project.id === internalProjectId || !(await deleteProject(sql, project.id))) throw gone(project.id);
    return { success: true };
  });

  app.get('/projects/current', guarded('client'), async (request) => {
    const { access, project } = callerOf(request);
    if (access === 'admin') return adminView(project);
    return clientProjectView(project, await selectDomains(sql, project.id), await usableProviders(project.id));
  });

  keyRoutes(app, parts);
}

const RotateBody = Type.Object({ immediate: flag }, closed);
const KeySetParams = Type.Object({ project_id: Type.String({ maxLength: 100 }) });
const KeySetQuery = Type.Object({ include_restricted: flag, include_anonymous: flag });

function keyRoutes(app: AuthProviderApp, parts: AuthProviderParts): void {
  app.get(
    '/projects/:project_id/.well-known/jwks.json',
    { ...open, schema: { ...open.schema, params: KeySetParams, querystring: KeySetQuery } },
    async (request, reply) => {
      const id = projectIdFromWire(request.params.project_id);
      const project = id === undefined ? undefined : await selectProject(parts.database.sql, id);
      if (project === undefined) throw plain(404, 'There is no such project.');
      const { include_restricted: restricted, include_anonymous: anonymous } = request.query;
      const wanted: Audience[] = ['plain'];
      if (restricted || anonymous) wanted.push('restricted');
      if (anonymous) wanted.push('anonymous');
      reply.header('cache-control', `public, max-age=${keySetSeconds}`);
      return keySet(parts, project.id, wanted);
    },
  );

  app.post(
    '/internal/signing-keys/rotate',
    { ...admin, schema: { ...admin.schema, body: RotateBody } },
    async (request) => {
      const { project } = callerOf(request);
      const isImmediate = request.body.immediate === true;
      const made = await rotateSigningKeys(parts, project.id, { isImmediate });
      return {
        keys: made.map(({ kid, audience, signsFrom }) => ({ kid, audience, signs_from_millis: signsFrom.getTime() })),
      };
    },
  );
}

function changeOf(body: {
  display_name?: string;
  description?: string | null;
  is_production_mode?: boolean;
  config?: {
    allow_localhost?: boolean;
    credential_enabled?: boolean;
    sign_up_enabled?: boolean;
    client_user_deletion_enabled?: boolean;
    require_publishable_client_key?: boolean;
  };
}): ProjectChange {
  const { config = {} } = body;
  const change = {
    displayName: body.display_name,
    description: body.description,
    isProductionMode: body.is_production_mode,
    allowLocalhost: config.allow_localhost,
    credentialEnabled: config.credential_enabled,
    signUpEnabled: config.sign_up_enabled,
    clientUserDeletionEnabled: config.client_user_deletion_enabled,
    requirePublishableClientKey: config.require_publishable_client_key,
  };
  return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
}

const gone = (id: string) => known('CURRENT_PROJECT_NOT_FOUND', 'There is no such project.', { project_id: id });
