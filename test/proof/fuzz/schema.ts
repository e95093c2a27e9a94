/** JSON Schema as far as Catnap's requests use it, and values that fit one. */
import type { Random } from '../random.ts';

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly pattern?: string;
  readonly format?: string;
}

/** Finds what a `$ref` names. */
export type Resolve = (reference: string) => Schema;

/** A value for an attribute by its name, such as the id of something that is there; undefined where none is known. */
export type Suggest = (name: string, schema: Schema) => unknown;

export interface Making {
  readonly random: Random;
  readonly resolve: Resolve;
  readonly suggest: Suggest;
  /** How likely an attribute is that may be left out. Most combinations of all of them are refused by some rule. */
  readonly density: number;
}

/** Texts of which one fits each pattern that a request has. */
const samples: readonly string[] = [
  'a',
  'sample-one',
  'sample_two',
  'Ünïcode name \u{1F431}',
  'main',
  '0/1DE2850',
  'FFFFFFFF/FFFFFFFF',
  '12:30',
  '2026-01-31T12:00:00Z',
  '11111111-2222-4333-8444-555555555555',
  'ann@example.com',
  'https://app.example.com',
  'http://localhost:3000/callback',
  '12345678-1234-4234-8234-123456789012',
  '10.0.0.0/8',
  '1',
  '30',
  'select 1',
];

const formats: Readonly<Record<string, readonly string[]>> = {
  uuid: ['11111111-2222-4333-8444-555555555555'],
  'ip-rule': ['10.0.0.0/8', '127.0.0.1', '::1', '10.0.0.1-10.0.0.9', '0.0.0.0/0'],
  uri: ['https://app.example.com/'],
  email: ['ann@example.com'],
};

export function makeValue(schema: Schema, making: Making, name = '', depth = 0): unknown {
  const { random, resolve } = making;
  if (schema.$ref !== undefined) return makeValue(resolve(schema.$ref), making, name, depth);
  const suggested = making.suggest(name, schema);
  if (suggested !== undefined) return suggested;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return random.pick(schema.enum);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) return makeValue(random.pick(choices), making, name, depth);
  if (schema.allOf !== undefined) {
    return Object.assign({}, ...schema.allOf.map((part) => makeValue(part, making, name, depth)));
  }
  const type = typeof schema.type === 'object' ? random.pick(schema.type) : schema.type;
  switch (type) {
    case 'object':
      return makeObject(schema, making, depth);
    case 'array':
      return makeList(schema, making, name, depth);
    case 'integer':
      return makeNumber(schema, random, true);
    case 'number':
      return makeNumber(schema, random, false);
    case 'boolean':
      return random.chance(0.5);
    case 'null':
      return null;
    case 'string':
      return makeText(schema, random);
    default:
      return random.pick<unknown>(['text', 7, true, null, {}, []]);
  }
}

function makeObject(schema: Schema, making: Making, depth: number): Record<string, unknown> {
  const { random } = making;
  const made: Record<string, unknown> = {};
  const likely = depth === 0 ? Math.max(0.8, making.density) : making.density;
  for (const [name, part] of Object.entries(schema.properties ?? {})) {
    if (schema.required?.includes(name) || random.chance(likely)) made[name] = makeValue(part, making, name, depth + 1);
  }
  const others = schema.additionalProperties;
  if (typeof others === 'object') {
    for (let left = random.below(3); left > 0; left--) {
      made[random.pick(['a', 'work_mem', 'label', 'statement_timeout'])] = makeValue(others, making, '', depth + 1);
    }
  }
  return made;
}

function makeList(schema: Schema, making: Making, name: string, depth: number): unknown[] {
  const least = schema.minItems ?? 0;
  const count = making.random.between(least, Math.min(schema.maxItems ?? 3, least + 2));
  const singular = name.replace(/s$/, '');
  return Array.from({ length: count }, () => makeValue(schema.items ?? {}, making, singular, depth + 1));
}

function makeNumber(schema: Schema, random: Random, isWhole: boolean): number {
  const least = schema.minimum ?? 0;
  const most = schema.maximum ?? 1_000;
  if (random.chance(0.3)) return random.pick([least, most]);
  const number = isWhole ? random.between(least, most) : least + random.next() * (most - least);
  return isWhole ? number : Math.round(number * 4) / 4;
}

function makeText(schema: Schema, random: Random): string {
  if (schema.format === 'date-time') return new Date(Date.now() + random.between(-100, 3_000) * 60_000).toISOString();
  const known = schema.format === undefined ? undefined : formats[schema.format];
  if (known !== undefined) return random.pick(known);
  const pattern = schema.pattern === undefined ? null : new RegExp(schema.pattern, 'u');
  const fits = (text: string) =>
    text.length >= (schema.minLength ?? 0) &&
    text.length <= (schema.maxLength ?? Infinity) &&
    (pattern?.test(text) ?? true);
  const mine = [...samples, `n${random.below(1_000_000)}`].filter(fits);
  return mine.length === 0 ? 'x'.repeat(Math.max(1, schema.minLength ?? 1)) : random.pick(mine);
}
