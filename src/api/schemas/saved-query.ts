/** Queries that people keep with a project. */
import { Type } from 'typebox';
import { closed, count, idOf, ref, time } from './common.ts';

const queryLengthMax = 20_000;

const name = Type.String({ minLength: 1, maxLength: 100, description: 'Name; several can have the same.' });
const query = Type.String({ maxLength: queryLengthMax, description: 'The SQL, of up to 20,000 characters.' });
const isOpen = Type.Boolean({ description: 'Whether it is open as a tab in the console.' });

export const SavedQuery = Type.Object(
  {
    id: idOf('saved query'),
    name,
    query,
    is_open: isOpen,
    revision: count('Grows with each change.'),
    created_at: time('When it was made.'),
    updated_at: time('When it was last changed.'),
  },
  { $id: 'SavedQuery', description: 'A query that is kept with the project. An addition of Catnap’s.' },
);

export const SavedQueryParams = Type.Object({ project_id: idOf('project'), saved_query_id: idOf('saved query') });
export const SavedQueryReply = Type.Object({ saved_query: ref(SavedQuery) });
export const SavedQueriesReply = Type.Object({ saved_queries: Type.Array(ref(SavedQuery)) });

export const SavedQueryCreateBody = Type.Object(
  { saved_query: Type.Object({ name, query, is_open: Type.Optional(isOpen) }, closed) },
  closed,
);

export const SavedQueryUpdateBody = Type.Object(
  {
    saved_query: Type.Object(
      {
        name: Type.Optional(name),
        query: Type.Optional(query),
        is_open: Type.Optional(isOpen),
        revision: Type.Optional(count('The revision that the change was made to; a newer one makes it a 409.')),
      },
      closed,
    ),
  },
  closed,
);
