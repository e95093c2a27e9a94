/**
 * Replies outside the versioned API that the console and the command line read. The OpenAPI document leaves them out,
 * because the published API has no such paths; the clients' types are generated from these as well.
 */
import { Type } from 'typebox';
import { apiKeyScopes } from '../../core/api-key.ts';
import { count, time } from './common.ts';

const localOnly = 'Everything from `driver` on is sent to the same machine, and elsewhere to requests with a key.';

export const Installation = Type.Object(
  {
    name: Type.String({ description: 'Always `catnap`.' }),
    version: Type.String({ description: 'Version of Catnap.' }),
    driver: Type.Optional(Type.String({ description: 'What runs the computes.' })),
    region_id: Type.Optional(Type.String({ description: 'The one region of this installation.' })),
    pg_versions: Type.Optional(
      Type.Array(Type.Integer(), { description: 'Major versions of Postgres that projects can have, ascending.' }),
    ),
    api_url: Type.Optional(Type.String({ description: 'Base URL of the API.' })),
    database_port: Type.Optional(Type.Integer({ description: 'Port that Postgres clients connect to.' })),
    limits_enforced: Type.Optional(Type.Boolean({ description: 'Whether computes are held to their sizes.' })),
    storage_method: Type.Optional(
      Type.Unsafe<'reflink' | 'copy' | null>({
        enum: ['reflink', 'copy', null],
        description: 'Whether branches share blocks with their source or are full copies; null where it is not known.',
      }),
    ),
    temporary_disk_enforcement: Type.Optional(
      Type.Enum(['disk', 'session'], {
        description: 'What bounds temporary files: a disk for each compute, or Postgres for each session.',
      }),
    ),
    counts: Type.Optional(
      Type.Object({
        projects: count('Number of projects.'),
        endpoints: Type.Object(
          {
            init: count('Computes that have not started yet.'),
            active: count('Computes that are active.'),
            idle: count('Computes that are suspended.'),
          },
          { description: 'Computes by state.' },
        ),
      }),
    ),
  },
  { description: `What runs here. ${localOnly}` },
);

export const ConsoleSession = Type.Object(
  {
    signed_in: Type.Boolean({ description: 'Whether the request carries a valid sign-in.' }),
    key: Type.Optional(
      Type.Object(
        {
          id: Type.Integer({ description: 'Number of the key.' }),
          name: Type.String({ description: 'Name of the key.' }),
          kind: Type.Enum(['personal', 'organization', 'project'], { description: 'What the key reaches.' }),
          project_id: Type.Unsafe<string | null>({
            type: ['string', 'null'],
            description: 'The only project that the key reaches; null unless its kind is `project`.',
          }),
          scope: Type.Enum([...apiKeyScopes], { description: 'What the key may do.' }),
        },
        { description: 'The key that the sign-in was made with.' },
      ),
    ),
  },
  { description: 'The sign-in of the console.' },
);

export const ConsoleLink = Type.Object(
  { link: Type.String({ description: 'Signs in once, within the hour: `/#open=` and this is the address.' }) },
  { description: 'A link that opens the console signed in.' },
);

export const WaitingLogin = Type.Object(
  {
    state: Type.Enum(['waiting', 'confirmed', 'connected', 'refused'], {
      description: 'Whether a person has answered, and whether the client went on.',
    }),
    client_address: Type.String({ description: 'Where the client connects from.' }),
    application_name: Type.String({ description: 'What the client says that it is.' }),
    role_name: Type.String({ description: 'The user that it asked for.' }),
    database_name: Type.String({ description: 'The database that it asked for.' }),
    created_at: time('When it connected.'),
    expires_at: time('Until when the link is valid.'),
  },
  { description: 'A client of the database port that waits for a person to let it in.' },
);

export const unversionedSchemas = { Installation, ConsoleSession, ConsoleLink, WaitingLogin };
