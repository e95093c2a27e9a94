/** The console's types say what the API says: each field is there, and optional where it may be absent. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../helpers/contract.ts';

let api: TestApi;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.close());

interface Schema {
  readonly properties: Readonly<Record<string, object>>;
  readonly required?: readonly string[];
}

test('every field of every type is one of the API, and may be absent only where the type says so', async () => {
  const schemas: Record<string, Schema> = (await api.app.inject('/api/v2/openapi.json')).json().components.schemas;
  const text = readFileSync(new URL('../../console/api/types.ts', import.meta.url), 'utf8');
  const interfaces = [...text.matchAll(/export interface (\w+) \{\n([\s\S]*?)\n\}/g)];
  expect(interfaces.length).toBeGreaterThan(10);
  for (const [, name = '', body = ''] of interfaces) {
    const schema = schemas[name];
    expect(schema, `${name} is no schema of the API`).toBeDefined();
    for (const [, field = '', mark = ''] of body.matchAll(/^ {2}readonly (\w+)(\??):/gm)) {
      expect(Object.keys(schema?.properties ?? {}), name).toContain(field);
      expect([name, field, schema?.required?.includes(field) ?? false]).toEqual([name, field, mark === '']);
    }
  }
});
