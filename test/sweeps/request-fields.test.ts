/**
 * Every attribute and query parameter that the published API takes is known here, on every operation that is served: it
 * has an effect, or is refused by its own rule. What is not known would be refused by name all the same, but with no
 * reason that helps its caller.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { makeApi } from '../helpers/contract.ts';

interface Schema {
  readonly $ref?: string;
  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}
interface Parameter {
  readonly $ref?: string;
  readonly in: string;
  readonly name: string;
}
interface Operation {
  readonly requestBody?: { readonly $ref?: string; readonly content?: Record<string, { readonly schema: Schema }> };
  readonly parameters?: readonly Parameter[];
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>> & { parameters?: Parameter[] }>>;
}

function published(): Document {
  const path = createRequire(import.meta.url).resolve('@neondatabase/api-client/public-v2-for-users.gen.yaml');
  return parse(readFileSync(path, 'utf8')) as Document;
}

function resolved<T extends { readonly $ref?: string }>(document: Document, part: T): T {
  if (part.$ref === undefined) return part;
  const names = part.$ref.split('/').slice(1);
  const found = names.reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], document);
  return resolved(document, found as T);
}

function attributes(document: Document, part: Schema | undefined, path: string): string[] {
  if (part === undefined) return [];
  const schema = resolved(document, part);
  const parts = [...(schema.allOf ?? []), ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])];
  const named = Object.entries(schema.properties ?? {});
  return [
    ...parts.flatMap((one) => attributes(document, one, path)),
    ...named.flatMap(([name, value]) => [`${path}.${name}`, ...attributes(document, value, `${path}.${name}`)]),
    ...attributes(document, schema.items, `${path}[]`),
  ];
}

function inputsOf(document: Document, operation: Operation, shared: readonly Parameter[] = []): string[] {
  const body = operation.requestBody && resolved(document, operation.requestBody);
  const parameters = [...shared, ...(operation.parameters ?? [])].map((one) => resolved(document, one));
  const queries = parameters.filter((one) => one.in === 'query').map(({ name }) => `query.${name}`);
  return [...attributes(document, body?.content?.['application/json']?.schema, 'body'), ...queries];
}

/** Lists that are always empty have nothing to page through. */
const needless: readonly string[] = ['cursor', 'limit'].map(
  (name) => `get /projects/{project_id}/branches/{branch_id}/functions: query.${name}`,
);

const anonymous = (path: string) => path.replace(/^\/api\/v2/, '').replace(/\{[^}]+\}/g, '{}');

test('every input of the published API is known on every operation that is served', async () => {
  const api = await makeApi();
  const own = (await api.call('GET', '/api/v2/openapi.json')).json() as Document;
  await api.close();
  const served = new Map(Object.entries(own.paths).map(([path, methods]) => [anonymous(path), methods]));
  const theirs = published();
  const unknown: string[] = [];
  let compared = 0;
  for (const [path, { parameters, ...methods }] of Object.entries(theirs.paths)) {
    for (const [method, operation] of Object.entries<Operation>(methods)) {
      const ours = served.get(anonymous(path))?.[method];
      if (ours === undefined) continue;
      const known = new Set(inputsOf(own, ours));
      const asked = inputsOf(theirs, operation, parameters);
      compared += asked.length;
      unknown.push(...asked.filter((input) => !known.has(input)).map((input) => `${method} ${path}: ${input}`));
    }
  }
  expect(unknown.sort()).toEqual(needless);
  expect(compared, 'the documents were compared').toBeGreaterThan(200);
});
