/**
 * Every operation of the published contract: it has a route of its name, which serves it or answers 501 with the
 * reason. The contract comes from npm, so a newer one fails here with the names of what it has more.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  addressOf,
  contractPackages,
  type PublishedOperation,
  publishedOperations,
} from '../../scripts/published-api.mjs';
import { renderCompatibility } from '../../scripts/render-compatibility.mjs';
import type { RouteFacts } from '../../src/api/plugins/route-table.ts';
import { makeApi, type TestApi } from '../helpers/contract.ts';

const operations = publishedOperations();
const root = fileURLToPath(new URL('../..', import.meta.url));
const prefix = '/api/v2';

let api: TestApi;
let routes: Map<string, RouteFacts>;
let own: Record<string, string>;

beforeAll(async () => {
  api = await makeApi();
  routes = new Map(
    api.app.routeTable
      .filter((route) => route.url.startsWith(prefix))
      .map((route) => [addressOf({ method: route.method, path: route.url.slice(prefix.length) }), route]),
  );
  const made = (await api.call('POST', `${prefix}/projects`, { body: { project: {} } })).json();
  own = {
    project_id: made.project.id,
    branch_id: made.branch.id,
    endpoint_id: made.endpoints[0].id,
    operation_id: made.operations[0].id,
    database_name: made.databases[0].name,
    role_name: made.roles[0].name,
    org_id: made.project.org_id,
    source_org_id: made.project.org_id,
    member_id: made.project.owner_id,
  };
});
afterAll(() => api.close());

const routeOf = (operation: PublishedOperation) => routes.get(addressOf(operation));
const urlOf = ({ path }: PublishedOperation) =>
  `${prefix}${path.replace(/\{(\w+)\}/g, (_all, name: string) => encodeURIComponent(own[name] ?? 'any'))}`;
const isRefused = (operation: PublishedOperation) => routeOf(operation)?.notOffered !== undefined;

test('the contract is whole: both packages are read', () => {
  expect(operations.length).toBeGreaterThanOrEqual(180);
  const ids = operations.map(({ operationId }) => operationId);
  expect(ids).toContain('recoverProjectBranch'); // in the file alone
  expect(ids).toContain('rotateCredential'); // in the SDK alone
  expect(new Set(operations.map(addressOf)).size).toBe(operations.length);
});

test('every operation has a route of its name', () => {
  const named = operations.map((operation) => [addressOf(operation), routeOf(operation)?.operationId]);
  expect(named).toEqual(operations.map((operation) => [addressOf(operation), operation.operationId]));
});

describe('what is not offered', () => {
  test('is answered with 501 and a sentence', async () => {
    const refused = operations.filter(isRefused);
    expect(refused.length).toBeGreaterThan(50);
    for (const operation of refused) {
      const reply = await api.call(operation.method as 'GET', urlOf(operation));
      const { message } = reply.json();
      expect([operation.operationId, reply.statusCode]).toEqual([operation.operationId, 501]);
      const sentence = `^${operation.operationId} is not available: it is not offered by Catnap( yet)?; \\S.{10,}`;
      expect(message).toMatch(new RegExp(sentence));
    }
  });

  test('whatever the body is', async () => {
    const url = `${prefix}/projects/${own.project_id}/branches/${own.branch_id}/functions/f/deployments`;
    const headers = { authorization: `Bearer ${api.token}`, 'content-type': 'multipart/form-data; boundary=x' };
    const reply = await api.app.inject({ method: 'POST', url, headers, payload: '--x--' });
    expect(reply.statusCode).toBe(501);
  });

  test('is said to nobody without a key, and of no project that the caller may not see', async () => {
    for (const operation of operations.filter(isRefused)) {
      const send = async (token: string | null) =>
        (await api.call(operation.method as 'GET', urlOf(operation), { token })).statusCode;
      expect([operation.operationId, await send(null)]).toEqual([operation.operationId, 401]);
      const isOwned = /\{(project|org|source_org)_id\}/.test(operation.path);
      expect([operation.operationId, await send(api.strangerToken)]).toEqual([
        operation.operationId,
        isOwned ? 404 : 501,
      ]);
    }
  });
});

describe('what is served', () => {
  /** These want an attribute, or an auth integration that the project does not have. */
  const needsMore = /\/(connection_uri|schema|compare_schema|v2\/branches|auth|auth\/\w+)$|consumption_history/;

  test('answers questions as the contract has it', async () => {
    const questions = operations.filter((operation) => operation.method === 'GET' && !isRefused(operation));
    expect(questions.length).toBeGreaterThan(30);
    for (const operation of questions.filter(({ path }) => !needsMore.test(path))) {
      // The reply is compared with its schema on the way.
      const reply = await api.call('GET', urlOf(operation));
      const expected = routeOf(operation)?.absent === 'thing' ? 404 : 200;
      expect([operation.operationId, reply.statusCode]).toEqual([operation.operationId, expected]);
    }
  });

  test('says what is not there', async () => {
    const branch = `${prefix}/projects/${own.project_id}/branches/${own.branch_id}`;
    const reply = await api.call('GET', `${branch}/data-api/${own.database_name}`);
    expect([reply.statusCode, reply.json().message]).toEqual([404, 'Data API not found; it is not offered by Catnap']);
  });

  test('lists nothing where nothing can be made', async () => {
    const branch = `${prefix}/projects/${own.project_id}/branches/${own.branch_id}`;
    const read = async (path: string) => (await api.call('GET', path)).json();
    expect(await read(`${branch}/buckets`)).toEqual({ buckets: [] });
    expect(await read(`${branch}/functions`)).toEqual({ functions: [] });
    expect(await read(`${branch}/triggers`)).toEqual({ triggers: [] });
    expect(await read(`${branch}/custom-domains`)).toEqual({ custom_domains: [] });
    expect(await read(`${prefix}/projects/${own.project_id}/permissions`)).toEqual({ project_permissions: [] });
    expect(await read(`${prefix}/organizations/${own.org_id}/invitations`)).toEqual({ invitations: [] });
  });
});

test('docs/compatibility.md is what the routes and the contract give', () => {
  const read = (path: string) => readFileSync(`${root}${path}`, 'utf8');
  const { clients } = JSON.parse(read('docs/compatibility/clients.json'));
  const { suites } = JSON.parse(read('docs/compatibility/suites.json'));
  const rendered = renderCompatibility({
    operations,
    packages: contractPackages(),
    routes: api.app.routeTable,
    clients,
    suites,
  });
  expect(read('docs/compatibility.md')).toBe(rendered);
});
