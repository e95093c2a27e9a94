/** Members of an organization and of its projects. */
import { Type } from 'typebox';
import { memberSorts } from '../../core/member.ts';
import { uuidPattern } from '../../lib/ids.ts';
import { idOf, ref, time } from './common.ts';
import { cursorQuery, limitQuery, NextPage } from './pagination.ts';

const userId = (description: string) => Type.String({ pattern: uuidPattern, description });

export const Member = Type.Object(
  {
    id: userId('Id of the member: that of its user.'),
    user_id: userId('Id of the user.'),
    org_id: idOf('organization'),
    role: Type.String({ description: 'What the member may do; admin is everything.' }),
    joined_at: time('When the user became a member.'),
  },
  { $id: 'Member', description: 'A user in an organization.' },
);

export const MembersReply = Type.Object({
  members: Type.Array(
    Type.Object({
      member: ref(Member),
      user: Type.Object({ email: Type.String({ description: 'Address.' }) }),
    }),
  ),
  pagination: ref(NextPage),
});

export const ProjectMembersReply = Type.Object({
  project_members: Type.Array(
    Type.Object({
      member_id: userId('Id of the member: that of its user.'),
      user_id: userId('Id of the user.'),
      email: Type.String({ description: 'Address.' }),
      name: Type.String({ description: 'Name.' }),
      org_role: Type.String({ description: 'Role in the organization that owns the project.' }),
      grant_source: Type.String({ description: 'Where the access comes from: the role in the organization.' }),
    }),
  ),
  pagination: ref(NextPage),
});

export const MembersQuery = Type.Object({
  sort_by: Type.Optional(
    Type.Enum([...memberSorts], { description: 'The attribute to sort by.', default: 'joined_at' }),
  ),
  sort_order: Type.Optional(Type.Enum(['asc', 'desc'], { description: 'The order.', default: 'desc' })),
  cursor: cursorQuery,
  limit: limitQuery(500),
});
export const ProjectMembersQuery = Type.Object({ cursor: cursorQuery, limit: limitQuery(500) });

export const MemberParams = Type.Object({ org_id: idOf('organization'), member_id: userId('Id of the member.') });
