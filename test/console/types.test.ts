/** The clients' types are what the API describes: they are generated, and what is checked in is up to date. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { renderCliTypes, renderConsoleTypes } from '../../scripts/render-types.mjs';
import { unversionedSchemas } from '../../src/api/schemas/unversioned.ts';
import { makeApi, type TestApi } from '../helpers/contract.ts';

let api: TestApi;
let document: object;
beforeAll(async () => {
  api = await makeApi();
  document = (await api.app.inject('/api/v2/openapi.json')).json();
});
afterAll(() => api.close());

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

test('the console has the types of the API as it is', () => {
  expect(read('console/api/generated.ts')).toBe(renderConsoleTypes(document, unversionedSchemas));
});

test('the command line has the types of the replies that it reads', () => {
  const text = read('src/cli/kit/generated.ts');
  expect(text).toBe(renderCliTypes(document, unversionedSchemas));
  expect(text.length).toBeLessThan(read('console/api/generated.ts').length);
});

describe('a type', () => {
  const render = (schema: object) => {
    const reply = { content: { 'application/json': { schema } } };
    const paths = { '/x': { get: { operationId: 'getIt', responses: { default: {}, 200: reply } } } };
    return renderConsoleTypes({ paths, components: { schemas: {} } }, {})
      .split('\n')
      .slice(2)
      .join('\n');
  };
  const text = { type: 'string' };

  test('has optional fields where they may be absent, and the words that describe them', () => {
    const properties = { a: { type: 'integer', description: 'How many.' }, b: { type: ['string', 'null'] } };
    expect(render({ type: 'object', properties, required: ['a'], description: 'It.' })).toBe(
      `/** It. */
export interface GetItReply {
  /** How many. */
  readonly a: number;
  readonly b?: string | null;
}
`,
    );
  });

  test('knows lists, maps, references and fixed values', () => {
    expect(render({ type: 'array', items: { enum: ['a', 1, null] } })).toBe(
      "export type GetItReply = readonly ('a' | 1 | null)[];\n",
    );
    expect(render({ type: 'object', additionalProperties: { type: 'array', items: text } })).toBe(
      'export type GetItReply = Readonly<Record<string, readonly string[]>>;\n',
    );
    expect(render({ type: 'array', items: { type: 'array', items: text } })).toBe(
      'export type GetItReply = readonly (readonly string[])[];\n',
    );
  });

  test('is refused where the schema is of a kind that the API does not use, or is missing', () => {
    expect(() => render({ oneOf: [text] })).toThrow('there is no type for the schema {"oneOf"');
    expect(() => render({ $ref: '#/components/schemas/Nothing' })).toThrow('the API has no type Nothing');
  });
});
