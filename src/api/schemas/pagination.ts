/** The two forms of paging: `cursor` (projects, operations) and `next` (branches). */
import { Type } from 'typebox';

export const CursorPage = Type.Object(
  {
    cursor: Type.String({
      minLength: 1,
      description: 'Hand back as `cursor` to get what follows this page.',
    }),
  },
  { $id: 'Pagination', description: 'Left out when the page is empty.' },
);

export const NextPage = Type.Object(
  {
    next: Type.Optional(Type.String({ description: 'Hand back as `cursor`; absent on the last page.' })),
    sort_by: Type.String({ description: 'The attribute that the list is sorted by.' }),
    sort_order: Type.String({ description: 'ASC or DESC.' }),
  },
  { $id: 'CursorPagination', description: 'Where the list goes on.' },
);

export const cursorQuery = Type.Optional(
  Type.String({ minLength: 1, maxLength: 1024, description: 'From the `pagination` of the page before.' }),
);

export const limitQuery = (maximum: number, standard?: number) =>
  Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum,
      description: 'Most rows in one reply.',
      ...(standard === undefined ? {} : { default: standard }),
    }),
  );

export const searchQuery = (what: string) =>
  Type.Optional(Type.String({ maxLength: 256, description: `Keep only those whose ${what} contains this text.` }));
