/** One sentence for a request that does not fit its schema: the path of the field, and what is allowed there. */
import type { FastifySchemaValidationError } from 'fastify/types/schema.js';
import { idPattern } from '../../lib/ids.ts';

interface Bounds {
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly type?: string | readonly string[];
}

/** Ajv adds the schema in its verbose mode. */
type VerboseError = FastifySchemaValidationError & { readonly parentSchema?: Bounds };

const partNames: Readonly<Record<string, string>> = {
  body: 'body',
  querystring: 'query',
  params: 'path',
  headers: 'header',
};

const patternMeanings: Readonly<Record<string, string>> = {
  [idPattern]: 'must be an id: 1 to 60 of a-z, 0-9 and -',
  '^[a-z0-9-]{0,60}$': 'must be an id: at most 60 of a-z, 0-9 and -',
  '\\S': 'must not be blank',
  '^([01][0-9]|2[0-3]):[0-5][0-9]$': 'must be a time of day as HH:MM',
  '^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}$': 'must be a log position such as 0/1DE2850',
};

const formatMeanings: Readonly<Record<string, string>> = {
  'date-time': 'must be a time such as 2026-01-31T12:00:00Z',
  uuid: 'must be a UUID',
  'ip-rule': 'must be an IP address, a CIDR block such as 10.0.0.0/8, or a range such as 10.0.0.1-10.0.0.9',
};

const typeNames: Readonly<Record<string, string>> = {
  string: 'a string',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  object: 'an object',
  array: 'a list',
  null: 'null',
};

export function validationMessage(errors: readonly FastifySchemaValidationError[], part: string): string {
  const error = errors[0];
  if (error === undefined) return 'invalid request';
  const path = pathOf(partNames[part] ?? part, error.instancePath);
  return `invalid request: ${sentence(error, path)}`;
}

function sentence(error: VerboseError, path: string): string {
  const bounds = error.parentSchema ?? {};
  const { params } = error;
  switch (error.keyword) {
    case 'required':
      return `${path}.${params.missingProperty} (field required)`;
    case 'additionalProperties':
      return `${path}.${shorten(String(params.additionalProperty))} is not a known attribute`;
    case 'enum':
      return `${path} must be one of ${(params.allowedValues as unknown[]).join(', ')}`;
    case 'type':
      return `${path} must be ${[bounds.type ?? 'string']
        .flat()
        .map((name) => typeNames[name] ?? name)
        .join(' or ')}`;
    case 'minLength':
    case 'maxLength':
      return `${path} must be ${range(bounds.minLength, bounds.maxLength)} characters`;
    case 'minimum':
    case 'maximum':
      return `${path} must be ${range(bounds.minimum, bounds.maximum)}`;
    case 'minItems':
    case 'maxItems':
      return `${path} must have ${range(bounds.minItems, bounds.maxItems)} items`;
    case 'uniqueItems':
      return `${path} must not have the same item twice`;
    case 'maxProperties':
      return `${path} must have at most ${bounds.maxProperties} entries`;
    case 'pattern':
      return `${path} ${patternMeanings[String(params.pattern)] ?? `must match ${params.pattern}`}`;
    case 'format':
      return `${path} ${formatMeanings[String(params.format)] ?? `must be a ${params.format}`}`;
    default:
      return `${path} ${error.message ?? 'is not valid'}`;
  }
}

function range(min: number | undefined, max: number | undefined): string {
  if (min !== undefined && max !== undefined) return `${min} to ${max}`;
  return min !== undefined ? `at least ${min}` : `at most ${max}`;
}

/** From a JSON pointer to `body.project.settings.allowed_ips.ips[0]`. */
function pathOf(part: string, pointer: string): string {
  const names = pointer.split('/').slice(1);
  return names.reduce((path, name) => {
    const plain = shorten(name.replaceAll('~1', '/').replaceAll('~0', '~'));
    return /^\d+$/.test(plain) ? `${path}[${plain}]` : `${path}.${plain}`;
  }, part);
}

/** Names come from the caller and are repeated in the reply, so they are bounded. */
function shorten(name: string): string {
  return name.length > 80 ? `${name.slice(0, 80)}…` : name;
}
