/**
 * Every operation of the auth integration, taken from the application's own document: without a key, with keys of
 * another account and another project, with each field missing, of the wrong type, too long and hostile. None of these
 * requests may change anything.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Followed,
  makeProviderElsewhere,
  type ProviderElsewhere,
} from '../../../test/helpers/provider-elsewhere.ts';

type Method = Parameters<ProviderElsewhere['api']['call']>[0];

interface Schema {
  readonly type?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
}
interface Operation {
  readonly tags: readonly string[];
  readonly operationId: string;
  readonly summary: string;
  readonly requestBody?: { readonly content: { readonly 'application/json': { readonly schema: Schema } } };
}
interface Swept {
  readonly method: Method;
  /** Filled in. */
  readonly path: string;
  readonly operation: Operation;
  readonly schema: Schema | undefined;
}

let elsewhere: ProviderElsewhere;
let app: Followed;
let operations: Swept[];
/** A value that is right, for each field. */
let values: Record<string, unknown>;

beforeAll(async () => {
  elsewhere = await makeProviderElsewhere();
  app = await elsewhere.makeFollowed();
  const { id } = elsewhere.standIn.addUser(app.project, 'ann@example.com');
  app.project.domains.add('https://app.example.com');
  values = {
    auth_provider: 'stack',
    project_id: app.projectId,
    branch_id: app.branchId,
    database_name: 'neondb',
    role_name: 'neondb_owner',
    email: 'new@example.com',
    name: 'New',
    domain: 'https://new.example.com',
    domains: [{ domain: 'https://app.example.com' }],
    delete_data: true,
    id: 'microsoft',
    client_id: 'c',
    client_secret: 's',
    microsoft_tenant_id: 't',
    auth_user_id: id,
    oauth_provider_id: 'google',
  };
  const document = (await elsewhere.api.app.inject('/api/v2/openapi.json')).json();
  operations = Object.entries<Record<string, Operation>>(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { tags }]) => tags.some((tag) => tag.startsWith('Auth')))
      .map(([method, operation]) => ({
        method: method.toUpperCase() as Method,
        path: `/api/v2${path.replace(/\{(\w+)\}/g, (_all, name: string) => encodeURIComponent(String(values[name])))}`,
        operation,
        schema: operation.requestBody?.content['application/json'].schema,
      })),
  );
});
afterAll(() => elsewhere.close());

const bodyOf = ({ schema }: Swept): Record<string, unknown> =>
  Object.fromEntries(Object.keys(schema?.properties ?? {}).map((name) => [name, values[name]]));

/** The whole state of the integration, here and at the provider. */
async function world(): Promise<string> {
  const { sql } = elsewhere.api.core.database;
  const rows =
    await sql`select status, owned_by, transfer_status, database_name, role_name, first_keys from auth_integrations`;
  const [queue] = await sql`select count(*) from operations`;
  const { users, domains, oauth, keySets, webhooks, ownerTeamId } = app.project;
  return JSON.stringify([[...rows], queue, [...users], [...domains], [...oauth], keySets, webhooks, ownerTeamId]);
}

async function send({ method, path, schema }: Swept, body: Record<string, unknown>, token?: string | null) {
  const options = { ...(schema === undefined ? {} : { body }), ...(token === undefined ? {} : { token }) };
  const reply = await elsewhere.api.call(method, path, options);
  return { status: reply.statusCode, message: reply.body === '' ? '' : String(reply.json().message) };
}

describe('every operation', () => {
  test('is there, and says that it is beta', () => {
    const names = operations.map(({ operation }) => operation.operationId);
    expect(names).toEqual(
      expect.arrayContaining([
        'createNeonAuthIntegration',
        'listNeonAuthIntegrations',
        'createNeonAuthProviderSDKKeys',
        'createNeonAuthNewUser',
        'transferNeonAuthProviderProject',
        'deleteNeonAuthIntegration',
        'deleteNeonAuthUser',
        'listNeonAuthOauthProviders',
        'getNeonAuth',
        'createNeonAuth',
        'disableNeonAuth',
      ]),
    );
    expect(names.length).toBeGreaterThanOrEqual(24);
    for (const { operation } of operations) {
      expect([operation.operationId, operation.tags, operation.summary]).toEqual([
        operation.operationId,
        [expect.stringMatching(/\(beta\)/)],
        expect.stringMatching(/\(beta\)$/),
      ]);
    }
  });

  test('is closed to nobody, to strangers and to keys of other projects', async () => {
    const post = async (path: string, body: object) =>
      (await elsewhere.api.call('POST', `/api/v2${path}`, { body })).json();
    const org = (await elsewhere.api.call('GET', '/api/v2/users/me/organizations')).json().organizations[0].id;
    const other = (await post('/projects', { project: {} })).project.id;
    const { key } = await post(`/organizations/${org}/api_keys`, { key_name: 'other', project_id: other });
    const before = await world();
    const calls = elsewhere.standIn.calls.length;
    for (const swept of operations) {
      const place = swept.operation.operationId;
      expect([place, (await send(swept, bodyOf(swept), null)).status]).toEqual([place, 401]);
      for (const token of [elsewhere.api.strangerToken, key]) {
        expect([place, (await send(swept, bodyOf(swept), token)).status]).toEqual([place, 404]);
      }
    }
    expect(await world()).toBe(before);
    expect(elsewhere.standIn.calls).toHaveLength(calls);
  });
});

/** Wrong values for every field that is interpreted; names and credentials may be any text. */
const hostile = [
  '',
  ' ',
  '\0',
  '../..',
  "'; drop table projects --",
  '<script>alert(1)</script>',
  '{{7*7}}',
  '\u{1F431}',
];
const isFreeText = (field: string) => /^(name|client_id|client_secret|microsoft_tenant_id)$/.test(field);
const wrongTypes = [7, true, null, [], {}, ['x'], { a: 1 }, 'text'];

function wrongValues(field: string): unknown[] {
  const right = values[field];
  const others = wrongTypes.filter((wrong) => {
    if (Array.isArray(right)) return !Array.isArray(wrong) || wrong.length === 0;
    return typeof wrong !== typeof right;
  });
  if (typeof right !== 'string') return [...others, ...(Array.isArray(right) ? [Array(101).fill(right[0]), [{}]] : [])];
  return [...others, 'x'.repeat(10_000), ...(isFreeText(field) ? ['', '\0'] : hostile)];
}

test('each field that is missing, of the wrong type, too long or hostile is refused, and nothing changes', async () => {
  const before = await world();
  let count = 0;
  for (const swept of operations) {
    const place = swept.operation.operationId;
    const body = bodyOf(swept);
    for (const field of Object.keys(body)) {
      if (swept.schema?.required?.includes(field)) {
        const { [field]: _gone, ...less } = body;
        const reply = await send(swept, less);
        expect([place, reply.status, reply.message]).toEqual([place, 400, expect.stringContaining(`body.${field}`)]);
      }
      for (const wrong of wrongValues(field)) {
        const { status, message } = await send(swept, { ...body, [field]: wrong });
        const what = [place, field, JSON.stringify(wrong).slice(0, 60)];
        expect([...what, status >= 400 && status < 500]).toEqual([...what, true]);
        if (status === 400) expect([...what, message]).toEqual([...what, expect.stringContaining(`body.${field}`)]);
        count += 1;
      }
    }
    if (swept.schema !== undefined)
      expect([place, (await send(swept, { ...body, more: 1 })).status]).toEqual([place, 400]);
  }
  expect(count).toBeGreaterThan(300);
  expect(await world()).toBe(before);
});
