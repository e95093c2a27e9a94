/** Roles of a branch. A password appears only where it was just made, and where it is asked for by name. */
import { Type } from 'typebox';
import { closed, identifier, idOf, ref, time } from './common.ts';
import { operationList } from './operation.ts';

export const Role = Type.Object(
  {
    branch_id: idOf('branch'),
    name: Type.String({ description: 'Name, unique in the branch.' }),
    password: Type.Optional(Type.String({ description: 'Only in the reply that made it.' })),
    protected: Type.Optional(Type.Boolean({ description: 'Whether the role belongs to the system.' })),
    authentication_method: Type.Optional(
      Type.Enum(['password', 'oauth', 'no_login'], { description: 'How the role logs in.' }),
    ),
    created_at: time('When it was made.'),
    updated_at: time('When it last changed.'),
  },
  { $id: 'Role', description: 'A Postgres role of a branch.' },
);

export const RoleReply = Type.Object({ role: ref(Role) });
export const RolesReply = Type.Object({ roles: Type.Array(ref(Role)) });
export const RoleOperationsReply = Type.Object({ role: ref(Role), operations: operationList });
export const RolePasswordReply = Type.Object({
  password: Type.String({ description: 'Password of the role.' }),
});

export const RoleCreateBody = Type.Object(
  {
    role: Type.Object(
      {
        name: identifier('Name of the new role, 63 bytes at most.'),
        no_login: Type.Optional(Type.Boolean({ description: 'Make a role that cannot log in.' })),
      },
      closed,
    ),
  },
  closed,
);

export const RoleResetBody = Type.Object(
  {
    password: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1000,
        description:
          'The new password, or a SCRAM-SHA-256 verifier of it, as Postgres takes both; made by Catnap when left out. ' +
          'An addition of Catnap.',
      }),
    ),
  },
  closed,
);

export const RoleVerifiersReply = Type.Object({
  roles: Type.Array(
    Type.Object({
      name: Type.String({ description: 'Name of the role.' }),
      verifier: Type.Optional(
        Type.String({ description: 'SCRAM-SHA-256 verifier of its password; absent when it cannot log in.' }),
      ),
    }),
  ),
});

export const RoleParams = Type.Object({
  project_id: idOf('project'),
  branch_id: idOf('branch'),
  role_name: Type.String({ minLength: 1, description: 'Name of the role.' }),
});
