/** Connection strings and their parts. */
import { Type } from 'typebox';
import { identifier, idOf, ref } from './common.ts';

export const ConnectionParameters = Type.Object(
  {
    database: Type.String({ description: 'Database name.' }),
    password: Type.String({ description: 'Password of the role.' }),
    role: Type.String({ description: 'Role name.' }),
    host: Type.String({ description: 'Host of the compute; carries a port when it is not 5432.' }),
    pooler_host: Type.String({ description: 'Host of the pooled way in.' }),
  },
  { $id: 'ConnectionParameters', description: 'The parts of a connection string.' },
);

export const ConnectionDetails = Type.Object(
  {
    connection_uri: Type.String({ description: 'Paste into any Postgres client.' }),
    connection_parameters: ref(ConnectionParameters),
  },
  { $id: 'ConnectionDetails', description: 'A connection string, whole and in parts.' },
);

export const ConnectionUriReply = Type.Object({
  uri: Type.String({ description: 'Connection string with the password in it.' }),
});

export const ConnectionUriQuery = Type.Object({
  branch_id: Type.Optional(idOf('branch; the default branch when left out')),
  endpoint_id: Type.Optional(idOf('endpoint; the read-write compute of the branch when left out')),
  database_name: identifier('Database to connect to.'),
  role_name: identifier('Role to connect as.'),
  pooled: Type.Optional(Type.Boolean({ default: false, description: 'Go through the pooler.' })),
});
