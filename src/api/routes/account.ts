/** The caller's own record, organizations and their plans, regions, and the kind of credential. */
import { organizationsOf, requireOrganization } from '../../core/access.ts';
import { getCurrentUser, setPlan } from '../../core/account.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { AuthDetailsReply, CurrentUserReply, RegionsQuery, RegionsReply } from '../schemas/account.ts';
import { ref } from '../schemas/common.ts';
import { errorReply } from '../schemas/error.ts';
import {
  Organization,
  OrganizationParams,
  OrganizationsReply,
  OrganizationUpdateBody,
} from '../schemas/organization.ts';
import { authDetailsView, currentUserView, organizationView, regionsView } from '../views/account.ts';
import { organizationAddress } from '../views/params.ts';
import { ask, write } from './command.ts';

const tags = ['Account'];

export function accountRoutes(app: App, parts: ApiParts): void {
  const me = {
    tags,
    operationId: 'getCurrentUserInfo',
    summary: 'Get the caller',
    description: 'The user behind the key. Keys of an organization have none.',
    response: { 200: ref(CurrentUserReply), ...errorReply },
  };
  app.get('/users/me', { schema: me }, (request) =>
    ask(parts, request, async (scope, caller) =>
      currentUserView(await getCurrentUser(scope, caller), parts.clock.now()),
    ),
  );

  const organizations = {
    tags: ['Organizations'],
    operationId: 'getCurrentUserOrganizations',
    summary: 'List organizations',
    description: 'Those of the caller; for a key of an organization, that one.',
    response: { 200: OrganizationsReply, ...errorReply },
  };
  app.get('/users/me/organizations', { schema: organizations }, (request) =>
    ask(parts, request, async (scope, caller) => ({
      organizations: (await organizationsOf(scope, caller)).map(organizationView),
    })),
  );

  const organization = {
    tags: ['Organizations'],
    operationId: 'getOrganization',
    summary: 'Get an organization',
    description: 'By its id.',
    params: OrganizationParams,
    response: { 200: ref(Organization), ...errorReply },
  };
  app.get('/organizations/:org_id', { schema: organization }, (request) =>
    ask(parts, request, async (scope, caller) =>
      organizationView(await requireOrganization(scope, caller, organizationAddress(request.params))),
    ),
  );

  const plan = {
    tags: ['Organizations'],
    operationId: 'updateOrganization',
    summary: 'Change the plan of an organization',
    description: 'An addition of Catnap’s, for the operator. A compute that runs gets new limits at its next start.',
    params: OrganizationParams,
    body: OrganizationUpdateBody,
    response: { 200: ref(Organization), ...errorReply },
  };
  app.patch('/organizations/:org_id', { schema: plan }, (request) =>
    write(parts, request, async (scope, caller) =>
      organizationView(await setPlan(scope, caller, organizationAddress(request.params), request.body.plan)),
    ),
  );

  const regions = {
    tags,
    operationId: 'getActiveRegions',
    summary: 'List regions',
    description: 'An installation is one region.',
    querystring: RegionsQuery,
    response: { 200: RegionsReply, ...errorReply },
  };
  app.get('/regions', { schema: regions }, async () => regionsView(parts.config));

  const auth = {
    tags,
    operationId: 'getAuthDetails',
    summary: 'Describe the credential',
    description: 'What kind of key the request carries, and whose it is.',
    response: { 200: AuthDetailsReply, ...errorReply },
  };
  app.get('/auth', { schema: auth }, (request) =>
    ask(parts, request, async (_scope, caller) => authDetailsView(caller)),
  );
}
