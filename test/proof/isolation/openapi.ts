/** The few things that the sweep reads from the application's own description. */
import type { RouteFacts } from '../../../src/api/plugins/route-table.ts';

export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
}
interface Parameter {
  readonly in: string;
  readonly name: string;
  readonly required?: boolean;
  readonly schema?: Schema;
}
interface Operation {
  readonly requestBody?: { readonly content: { readonly 'application/json': { readonly schema: Schema } } };
  readonly parameters?: readonly Parameter[];
}
export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

const nothing: Operation = {};

export function operationOf(document: Document, route: RouteFacts): Operation {
  const path = route.url.replace('/api/v2', '').replace(/:(\w+)/g, '{$1}');
  // The document leaves out HEAD, which is served as GET is.
  const method = route.method === 'HEAD' ? 'get' : route.method.toLowerCase();
  return document.paths[path]?.[method] ?? nothing;
}

export const bodyOf = ({ requestBody }: Operation): Schema | undefined =>
  requestBody?.content['application/json'].schema;

export const queriesOf = ({ parameters = [] }: Operation): readonly Parameter[] =>
  parameters.filter((one) => one.in === 'query');

/** With references followed and alternatives taken together. */
export function flatten(document: Document, schema: Schema): Schema {
  if (schema.$ref !== undefined) {
    const names = schema.$ref.split('/').slice(1);
    const found = names.reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], document);
    return flatten(document, found as Schema);
  }
  const parts = [...(schema.allOf ?? []), ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])];
  return parts.map((part) => flatten(document, part)).reduce((all, part) => merge(all, part), schema);
}

function merge(one: Schema, other: Schema): Schema {
  return {
    ...other,
    ...one,
    required: [...(one.required ?? []), ...(other.required ?? [])],
    properties: { ...other.properties, ...one.properties },
  };
}

/** The places of a body that may be left out or not, as lists of names; `[]` stands for the member of a list. */
export function fieldsOf(document: Document, schema: Schema | undefined, at: readonly string[] = []): string[][] {
  if (schema === undefined) return [];
  const { properties = {}, items } = flatten(document, schema);
  const below = Object.entries(properties).flatMap(([name, value]) => [
    [...at, name],
    ...fieldsOf(document, value, [...at, name]),
  ]);
  return items === undefined ? below : [...below, ...fieldsOf(document, items, [...at, '[]'])];
}

/** A body that the schema takes, with what is required, and with `place` if it is given. */
export function sample(
  document: Document,
  given: Schema,
  valueFor: (field: string) => unknown,
  place: readonly string[] = [],
  field = '',
): unknown {
  const schema = flatten(document, given);
  const [next, ...rest] = place;
  if (schema.type === 'array' || schema.items !== undefined) {
    return [sample(document, schema.items ?? {}, valueFor, rest, field)];
  }
  if (schema.properties !== undefined && Object.keys(schema.properties).length > 0) {
    const names = new Set([...(schema.required ?? []), ...(next === undefined ? [] : [next])]);
    const entries = [...names].map((name) => {
      const part = schema.properties?.[name] ?? {};
      return [name, sample(document, part, valueFor, name === next ? rest : [], name)];
    });
    return Object.fromEntries(entries);
  }
  const known = valueFor(field);
  if (known !== undefined) return known;
  if (schema.enum !== undefined) return schema.enum[0];
  if (schema.type === 'object') return {};
  if (schema.type === 'boolean') return false;
  return schema.type === 'string' ? 'sample' : 1;
}
