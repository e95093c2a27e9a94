/** Members of an organization and of its projects, to read: an installation has one user. */
import { getMember, listMembers, listProjectMembers } from '../../core/member.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { ProjectParams, ref } from '../schemas/common.ts';
import { errorReply } from '../schemas/error.ts';
import {
  Member,
  MemberParams,
  MembersQuery,
  MembersReply,
  ProjectMembersQuery,
  ProjectMembersReply,
} from '../schemas/member.ts';
import { OrganizationParams } from '../schemas/organization.ts';
import { memberPage, membersView, memberView, projectMemberPage, projectMembersView } from '../views/member.ts';
import { organizationAddress, projectAddress } from '../views/params.ts';
import { ask } from './command.ts';

const tags = ['Organizations'];

export function memberRoutes(app: App, parts: ApiParts): void {
  const list = {
    tags,
    operationId: 'getOrganizationMembers',
    summary: 'List members',
    description: 'The users of an organization. Not for keys of one project.',
    params: OrganizationParams,
    querystring: MembersQuery,
    response: { 200: MembersReply, ...errorReply },
  };
  app.get('/organizations/:org_id/members', { schema: list }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const page = memberPage(request.query);
      return membersView(await listMembers(scope, caller, organizationAddress(request.params), page), page);
    }),
  );

  const one = {
    tags,
    operationId: 'getOrganizationMember',
    summary: 'Get a member',
    description: 'By its id, which is that of its user. Not for keys of one project.',
    params: MemberParams,
    response: { 200: ref(Member), ...errorReply },
  };
  app.get('/organizations/:org_id/members/:member_id', { schema: one }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const { member_id: memberId } = request.params;
      return memberView(await getMember(scope, caller, organizationAddress(request.params), memberId));
    }),
  );

  const ofProject = {
    tags: ['Projects'],
    operationId: 'listProjectMembers',
    summary: 'List members of a project',
    description: 'Those of its organization, who may do everything with it. Not for keys of one project.',
    params: ProjectParams,
    querystring: ProjectMembersQuery,
    response: { 200: ProjectMembersReply, ...errorReply },
  };
  app.get('/projects/:project_id/members', { schema: ofProject }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const { projectId } = projectAddress(request.params);
      return projectMembersView(await listProjectMembers(scope, caller, projectId, projectMemberPage(request.query)));
    }),
  );
}
