/** Members: row to wire. */
import type { Static } from 'typebox';
import type { Member, MemberPage, Members } from '../../core/member.ts';
import type {
  Member as MemberSchema,
  MembersQuery,
  MembersReply,
  ProjectMembersQuery,
  ProjectMembersReply,
} from '../schemas/member.ts';
import { time } from './common.ts';

export function memberPage(query: Static<typeof MembersQuery>): MemberPage {
  return {
    ...projectMemberPage(query),
    sortBy: query.sort_by ?? 'joined_at',
    descending: query.sort_order !== 'asc',
  };
}

export function projectMemberPage(query: Static<typeof ProjectMembersQuery>): Pick<MemberPage, 'after' | 'limit'> {
  return { after: query.cursor ?? null, limit: query.limit ?? null };
}

export function memberView(row: Member): Static<typeof MemberSchema> {
  return {
    id: row.userId,
    user_id: row.userId,
    org_id: row.organizationId,
    role: row.role,
    joined_at: time(row.joinedAt),
  };
}

export function membersView(found: Members, page: MemberPage): Static<typeof MembersReply> {
  return {
    members: found.members.map((row) => ({ member: memberView(row), user: { email: row.email } })),
    pagination: pagination(found, page),
  };
}

export function projectMembersView(found: Members): Static<typeof ProjectMembersReply> {
  return {
    project_members: found.members.map((row) => ({
      member_id: row.userId,
      user_id: row.userId,
      email: row.email,
      name: row.name,
      org_role: row.role,
      grant_source: 'org_admin_override',
    })),
    pagination: pagination(found, { sortBy: 'joined_at', descending: false }),
  };
}

function pagination({ next }: Members, { sortBy, descending }: Pick<MemberPage, 'sortBy' | 'descending'>) {
  return { ...(next === null ? {} : { next }), sort_by: sortBy, sort_order: descending ? 'DESC' : 'ASC' };
}
