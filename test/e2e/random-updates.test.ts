/**
 * Random changes, good and bad, from a fixed seed: every answer is a success or names the field, and after
 * each the server is what the API says.
 */
import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { maxConnections } from '../../src/core/sizing.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

const seed = 20_261_115;
const updates = Number(process.env.CATNAP_TEST_UPDATES ?? 30);

let program: Program;
let path: string;
let projectId: string;
let uri: string;
beforeAll(async () => {
  program = await Program.create();
  await program.start();
  const { body } = await program.api('POST', '/projects', { project: { name: 'random' } });
  projectId = body.project.id;
  path = `/projects/${projectId}/endpoints/${body.endpoints[0].id}`;
  uri = body.connection_uris[0].connection_uri;
  await program.settle(projectId);
});
afterAll(() => program.destroy());

/** Values are written as `SHOW` prints them, so that both sides can be compared as text. */
const goodSettings = fc.record(
  {
    work_mem: fc.constantFrom('4MB', '8MB'),
    random_page_cost: fc.constantFrom('1.1', '4'),
    max_locks_per_transaction: fc.constantFrom('64', '96'),
  },
  { requiredKeys: [] },
);
const badSettings = fc.dictionary(
  fc.constantFrom('work_mem', 'random_page_cost', 'max_locks_per_transaction', 'fsync', 'no_such_setting'),
  fc.constantFrom('off', 'lots', ''),
  { minKeys: 1, maxKeys: 2 },
);

const goodChanges = fc.record(
  {
    autoscaling_limit_min_cu: fc.constantFrom<unknown>(0.25, 0.5, 1),
    autoscaling_limit_max_cu: fc.constantFrom<unknown>(1, 2, 4),
    suspend_timeout_seconds: fc.constantFrom<unknown>(0, -1, 60, 3_600),
    name: fc.constantFrom<unknown>('a', 'a longer name'),
    pooler_enabled: fc.boolean(),
    passwordless_access: fc.boolean(),
    settings: fc.record({ pg_settings: goodSettings }),
  },
  { requiredKeys: [] },
);
const anyChanges = fc.record(
  {
    autoscaling_limit_min_cu: fc.constantFrom<unknown>(2, 0.3, 17, -1, '1', null),
    autoscaling_limit_max_cu: fc.constantFrom<unknown>(0.5, 18, 99, true),
    suspend_timeout_seconds: fc.constantFrom<unknown>(300, 59, 604_801, 1.5, 'never'),
    name: fc.constantFrom<unknown>('good', '', 'x'.repeat(65), 7),
    pooler_enabled: fc.constantFrom<unknown>(true, 'yes'),
    settings: fc.oneof(fc.record({ pg_settings: badSettings }), fc.constant<unknown>({ other: 1 })),
    unknown_attribute: fc.constant(1),
  },
  { requiredKeys: [] },
);
const changes = fc.oneof({ weight: 3, arbitrary: goodChanges }, { weight: 2, arbitrary: anyChanges });

it(`${updates} random updates (seed ${seed})`, async () => {
  const statuses = new Map<number, number>();
  for (const endpoint of fc.sample(changes, { numRuns: updates, seed })) {
    const before = (await program.api('GET', path)).body.endpoint;
    const { status, body } = await program.api('PATCH', path, { endpoint });
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    const told = JSON.stringify({ endpoint, status, message: body.message });
    if (status === 200) await program.settle(projectId);
    else {
      expect(status, told).toBe(400);
      const named = Object.keys(endpoint).some((field) => body.message.includes(field));
      expect(named, `the message names no field: ${told}`).toBe(true);
    }
    const after = (await program.api('GET', path)).body.endpoint;
    if (status !== 200) expect(withoutActivity(after), told).toEqual(withoutActivity(before));
    await expectServerIs(after, told);
  }
  expect(statuses.get(200), 'some updates are good').toBeGreaterThan(5);
  expect(statuses.get(400), 'some updates are bad').toBeGreaterThan(5);
});

/** When it was last used, and will sleep for that, may change between two looks. */
const withoutActivity = (endpoint: object) => ({ ...endpoint, last_active: null, why_awake: null });

interface Shown {
  readonly autoscaling_limit_min_cu: number;
  readonly autoscaling_limit_max_cu: number;
  readonly settings: { readonly pg_settings?: Readonly<Record<string, string>> };
}

async function expectServerIs(endpoint: Shown, told: string): Promise<void> {
  const size = { minCu: endpoint.autoscaling_limit_min_cu, maxCu: endpoint.autoscaling_limit_max_cu };
  const expected = { max_connections: String(maxConnections(size)), ...endpoint.settings.pg_settings };
  const names = Object.keys(expected).map((name) => `'${name}', current_setting('${name}')`);
  expect(JSON.parse(await ask(uri, `select json_build_object(${names.join(', ')})::text`)), told).toEqual(expected);
}
