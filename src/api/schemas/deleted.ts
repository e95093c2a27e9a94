/** What was deleted and can still be recovered. */
import { Type } from 'typebox';
import { count, idOf, ref, time } from './common.ts';

export const DeletedThing = Type.Object(
  {
    kind: Type.Enum(['project', 'branch'], { description: 'What was deleted.' }),
    project_id: idOf('project, or the project of the branch'),
    project_name: Type.String({ description: 'Name of that project.' }),
    branch_id: Type.Optional(idOf('branch')),
    name: Type.String({ description: 'Name of what was deleted.' }),
    logical_size: Type.Optional(count('Bytes of data, of a project in all its branches; absent if never measured.')),
    deleted_at: time('When it was deleted.'),
    recoverable_until: time('When it is removed for good.'),
    deletion_method: Type.Enum(['user', 'ttl'], { description: '`user`: by a request. `ttl`: it had expired.' }),
  },
  { $id: 'DeletedThing', description: 'A deleted project or branch.' },
);

export const DeletedReply = Type.Object({ deleted: Type.Array(ref(DeletedThing)) });
