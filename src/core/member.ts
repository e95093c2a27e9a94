/**
 * Members of an organization, who are members of all its projects. An installation has one user, so there is nobody to
 * invite and no role to change; the lists are for clients that ask.
 */
import { type MemberRow, selectMembers } from '../db/accounts.ts';
import { CatnapError, invalid, notFound } from '../lib/errors.ts';
import type { OrganizationId, ProjectId } from '../lib/ids.ts';
import { type Caller, requireOrganization, requireProject } from './access.ts';
import type { Scope } from './context.ts';

export type Member = MemberRow;

export const memberSorts = ['joined_at', 'email', 'role'] as const;

export interface MemberPage {
  readonly sortBy: (typeof memberSorts)[number];
  readonly descending: boolean;
  /** The user that the page before ended with. */
  readonly after: string | null;
  readonly limit: number | null;
}

export interface Members {
  readonly members: Member[];
  readonly next: string | null;
}

export async function listMembers(
  scope: Scope,
  caller: Caller,
  organizationId: OrganizationId,
  page: MemberPage,
): Promise<Members> {
  await requireOrganization(scope, caller, organizationId);
  requireNoProjectKey(caller);
  return cut(await selectMembers(scope.sql, organizationId), page);
}

/** A member is found by the id of its user. */
export async function getMember(
  scope: Scope,
  caller: Caller,
  organizationId: OrganizationId,
  memberId: string,
): Promise<Member> {
  await requireOrganization(scope, caller, organizationId);
  requireNoProjectKey(caller);
  const found = (await selectMembers(scope.sql, organizationId)).find((member) => member.userId === memberId);
  if (found === undefined) throw notFound('member');
  return found;
}

export async function listProjectMembers(
  scope: Scope,
  caller: Caller,
  projectId: ProjectId,
  page: Pick<MemberPage, 'after' | 'limit'>,
): Promise<Members> {
  const project = await requireProject(scope, caller, projectId, 'manage');
  return cut(await selectMembers(scope.sql, project.organizationId), {
    ...page,
    sortBy: 'joined_at',
    descending: false,
  });
}

/** The key of one project is given to programs and guests; people's addresses are not for them. */
function requireNoProjectKey(caller: Caller): void {
  if (caller.kind === 'project') throw new CatnapError('forbidden', 'not allowed for project-scoped API keys');
}

/** An organization has a handful of members, so sorting and paging need no statement of their own. */
function cut(rows: readonly Member[], { sortBy, descending, after, limit }: MemberPage): Members {
  const sorted = [...rows].sort(
    (a, b) => compare(sortKey(a, sortBy), sortKey(b, sortBy)) || compare(a.userId, b.userId),
  );
  if (descending) sorted.reverse();
  const start = after === null ? 0 : sorted.findIndex((member) => member.userId === after) + 1;
  if (after !== null && start === 0) {
    throw invalid('invalid request: query.cursor must be one that a reply to this list has given');
  }
  const members = sorted.slice(start, limit === null ? undefined : start + limit);
  const last = start + members.length < sorted.length ? members.at(-1) : undefined;
  return { members, next: last?.userId ?? null };
}

function sortKey(member: Member, sortBy: MemberPage['sortBy']): string {
  return sortBy === 'joined_at' ? member.joinedAt.toISOString() : member[sortBy];
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
