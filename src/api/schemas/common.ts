/** Pieces that several nouns share: ids, times, maps, path parameters, and references between schemas. */
import { type Static, type TSchema, Type } from 'typebox';
import { daySeconds } from '../../lib/clock.ts';
import { idPattern } from '../../lib/ids.ts';

/** For request objects: an attribute that is not listed is refused by name. */
export const closed = { additionalProperties: false } as const;

/** A reference by `$id`, so that the OpenAPI document has components; the static type stays that of the target. */
export function ref<T extends TSchema>(schema: T) {
  const id = (schema as { $id?: string }).$id;
  if (id === undefined) throw new Error('BUG: a schema without $id cannot be referred to');
  return Type.Unsafe<Static<T>>(Type.Ref(id));
}

export const idOf = (noun: string) => Type.String({ pattern: idPattern, description: `Id of the ${noun}.` });

export const time = (description: string) => Type.String({ format: 'date-time', description });

/** Not `Type.Record`: its key pattern skips names with a line break, and the serialiser then drops them. */
export const stringMap = (description: string, options: { maxProperties?: number } = {}) =>
  Type.Unsafe<Record<string, string>>({
    type: 'object',
    additionalProperties: { type: 'string' },
    description,
    ...options,
  });

export const count = (description: string) =>
  Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description });

/** Postgres identifiers hold at most 63 bytes; core counts the bytes, this bounds the characters. */
export const identifier = (description: string) => Type.String({ minLength: 1, maxLength: 63, description });

export const computeUnits = (description: string) => Type.Number({ minimum: 0.25, maximum: 56, description });

/** An open string as published, so that the refusal can say why there is only one. */
export const provisionerInput = Type.Optional(
  Type.String({ minLength: 1, maxLength: 64, description: 'Only `k8s-neonvm`.' }),
);

export const suspendTimeout = Type.Integer({
  minimum: -1,
  maximum: 7 * daySeconds,
  description: 'Seconds without activity before the compute naps: 0 is the default of 300, -1 is never.',
});

export const ProjectParams = Type.Object({ project_id: idOf('project') });
export const BranchParams = Type.Object({ project_id: idOf('project'), branch_id: idOf('branch') });
export const EndpointParams = Type.Object({ project_id: idOf('project'), endpoint_id: idOf('endpoint') });
