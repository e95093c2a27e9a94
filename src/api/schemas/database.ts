/** Databases of a branch. */
import { Type } from 'typebox';
import { closed, identifier, idOf, ref, time } from './common.ts';
import { operationList } from './operation.ts';

export const Database = Type.Object(
  {
    id: Type.Integer({ description: 'Number of the database.' }),
    branch_id: idOf('branch'),
    name: Type.String({ description: 'Name, unique in the branch.' }),
    owner_name: Type.String({ description: 'Role that owns it.' }),
    created_at: time('When it was made.'),
    updated_at: time('When it last changed.'),
  },
  { $id: 'Database', description: 'A database of a branch.' },
);

export const DatabaseReply = Type.Object({ database: ref(Database) });
export const DatabasesReply = Type.Object({ databases: Type.Array(ref(Database)) });
export const DatabaseOperationsReply = Type.Object({ database: ref(Database), operations: operationList });

export const DatabaseCreateBody = Type.Object(
  {
    database: Type.Object(
      { name: identifier('Name of the new database.'), owner_name: identifier('Role that will own it.') },
      closed,
    ),
  },
  closed,
);

export const DatabaseUpdateBody = Type.Object(
  {
    database: Type.Object(
      {
        name: Type.Optional(identifier('New name.')),
        owner_name: Type.Optional(identifier('New owner.')),
      },
      closed,
    ),
  },
  closed,
);

export const DatabaseParams = Type.Object({
  project_id: idOf('project'),
  branch_id: idOf('branch'),
  database_name: Type.String({ minLength: 1, description: 'Name of the database.' }),
});
