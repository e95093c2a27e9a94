/** Parts of schemas that several routes share. */
import { Type } from '@fastify/type-provider-typebox';
import { uuidPattern } from '../../lib/ids.ts';

export const Uuid = Type.String({ pattern: uuidPattern });

/** Unknown attributes are refused: a misspelt one would otherwise be ignored silently. */
export const closed = { additionalProperties: false } as const;

export const nullable = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) =>
  Type.Union([schema, Type.Null()]);

/** An address with text on both sides; clients of the server API may use names without a dot. */
export const emailPattern = '^[^\\s@<>"]{1,64}@[^\\s@<>"]{1,190}$';
export const Email = Type.String({ maxLength: 256, pattern: emailPattern });

export const webUrlPattern = '^https?://[^\\s<>"\\\\]+$';
export const WebUrl = Type.String({ maxLength: 2000, pattern: webUrlPattern });

export const IdParams = Type.Object({ id: Uuid });
