/**
 * How requests are checked against their schemas. Bodies are taken as they are: no coercion, unknown attributes are
 * refused. Query strings are text, so they are coerced to what the schema says, and unknown parameters are ignored.
 */
import type { FastifyServerOptions } from 'fastify';
import { invalid } from '../../lib/errors.ts';
import { parseIpRule } from '../../lib/ip.ts';
import type { App } from '../kit/app-type.ts';
import { validationMessage } from '../kit/validation-message.ts';

export const validationOptions = {
  ajv: {
    customOptions: {
      coerceTypes: false,
      removeAdditional: false,
      useDefaults: true,
      // Errors carry the schema they broke, so that messages can state the bounds.
      verbose: true,
      allowUnionTypes: true,
      // Would compile the schema of schemas at each start; a test checks ours against it.
      validateSchema: false,
      formats: { 'ip-rule': (text: string) => parseIpRule(text) !== null },
    },
  },
  schemaErrorFormatter: (errors, part) => invalid(validationMessage(errors, part)),
} as const satisfies FastifyServerOptions;

export function useValidation(app: App): void {
  app.addHook('preValidation', async (request) => {
    const { schema } = request.routeOptions;
    coerceValues(request.query, schema?.querystring);
    coerceValues(request.params, schema?.params);
  });
  app.addHook('preHandler', async (request) => {
    // Without a schema the body is not read, and nothing bounds its depth.
    if (request.routeOptions.schema?.body !== undefined) requireStorable(request.body, 'body');
    requireStorable(request.query, 'query');
    requireStorable(request.params, 'path');
  });
}

interface PropertySchema {
  readonly type?: string;
  readonly items?: PropertySchema;
}

const truths: readonly string[] = ['true', 'True', 'TRUE', '1'];
const lies: readonly string[] = ['false', 'False', 'FALSE', '0'];

/** Changes the values in place. One that cannot be what the schema asks for stays text, for the validation to name. */
export function coerceValues(values: unknown, schema: unknown): void {
  const properties = (schema as { properties?: Record<string, PropertySchema> } | undefined)?.properties;
  if (properties === undefined || typeof values !== 'object' || values === null) return;
  const record = values as Record<string, unknown>;
  for (const [name, property] of Object.entries(properties)) {
    const value = record[name];
    if (value === '') delete record[name];
    else if (typeof value === 'string') record[name] = coerce(value, property);
  }
}

function coerce(text: string, schema: PropertySchema): unknown {
  switch (schema.type) {
    case 'integer':
    case 'number':
      return /^-?\d{1,20}(\.\d{1,20})?$/.test(text) ? Number(text) : text;
    case 'boolean':
      return truths.includes(text) ? true : lies.includes(text) ? false : text;
    case 'array':
      return text.split(',').map((item) => coerce(item, schema.items ?? {}));
    default:
      return text;
  }
}

/** Postgres stores neither NUL nor half of a surrogate pair; without this they would fail deep inside as a 500. */
export const unstorable = /[\0\p{Surrogate}]/u;

/** Runs after the schemas, which bound the depth. */
function requireStorable(value: unknown, path: string): void {
  if (typeof value === 'string' && unstorable.test(value)) {
    throw invalid(`invalid request: ${path} must not contain NUL or unpaired surrogate characters`);
  }
  if (typeof value !== 'object' || value === null) return;
  for (const [key, item] of Object.entries(value)) {
    if (unstorable.test(key)) {
      throw invalid(`invalid request: a key of ${path} must not contain NUL or unpaired surrogate characters`);
    }
    requireStorable(item, `${path}.${key}`);
  }
}
