/**
 * The project `shop`: 20 branches in a tree, tables that refer to each other, one of 10,000 rows and 51 columns, saved
 * queries, snapshots, a branch that was deleted, one that deletes itself, and operations that have failed.
 */
import { schema, seed } from './shop-tables.mjs';

/** A name, its parent, whether it has a compute. */
const tree = [
  ['staging', 'main', true],
  ['production-mirror', 'main', false],
  ['dev/ada', 'main', true],
  ['dev/grace', 'main', false],
  ['dev/margaret', 'main', false],
  ['release/2026-11', 'main', true],
  ['preview/pr-1038-new-checkout', 'staging', false],
  ['preview/pr-1041-faster-search', 'staging', false],
  ['preview/pr-1042', 'staging', false],
  ['preview/pr-1044-invoices-as-pdf-with-a-rather-long-name-of-a-branch', 'staging', false],
  ['preview/pr-1045', 'staging', false],
  ['preview/pr-1047-coupons', 'staging', false],
  ['preview/pr-1049-guest-orders', 'staging', true],
  ['experiment/partitioned-orders', 'dev/ada', false],
  ['experiment/row-security', 'dev/ada', false],
  ['experiment/vector-search', 'dev/ada', false],
  ['hotfix/rounding', 'release/2026-11', false],
  ['support/case-5521', 'production-mirror', false],
  ['qa/nightly', 'staging', false],
];

const savedQueries = [
  ['Revenue by month', "select date_trunc('month', placed_at) as month, sum(total) from orders group by 1 order by 1"],
  [
    'Best customers',
    `select c.name, count(*) as orders, sum(o.total) as spent
from customers c join orders o on o.customer_id = c.id
group by c.id order by spent desc limit 20`,
  ],
  ['Wide table', 'select * from measurements'],
];

export async function makeShop(demo) {
  const project = await demo.project('shop');
  const path = `/projects/${project.id}`;
  const uri = await demo.uriOf(project.id, project.main.id);
  const [{ tables }] = await demo.sql(uri, "select count(*)::int as tables from pg_tables where schemaname = 'public'");
  if (Number(tables) === 0) {
    demo.say('shop: tables and rows');
    await demo.sql(uri, schema);
    for (const statement of seed) await demo.sql(uri, statement);
  }
  await makeTree(demo, project);
  await makeMarks(demo, project);
  const { saved_queries: kept } = await demo.api('GET', `${path}/saved_queries`);
  for (const [name, query] of savedQueries) {
    if (kept.some((one) => one.name === name)) continue;
    await demo.api('POST', `${path}/saved_queries`, { saved_query: { name, query, is_open: false } });
  }
  await makeFailures(demo, project.id);
}

async function makeTree(demo, { id, main }) {
  const ids = new Map((await demo.branchesOf(id)).map((branch) => [branch.name, branch.id]));
  for (const [name, parent, hasCompute] of tree) {
    if (ids.has(name)) continue;
    demo.say(`shop: branch ${name}`);
    const { branch } = await demo.api('POST', `/projects/${id}/branches`, {
      branch: { name, parent_id: parent === 'main' ? main.id : ids.get(parent) },
      ...(hasCompute && { endpoints: [{ type: 'read_write' }] }),
    });
    ids.set(name, branch.id);
    await demo.settle(id);
  }
}

/** What a branch can have besides data: protection, expiry, snapshots; and one that was deleted. */
async function makeMarks(demo, { id, main }) {
  const branches = await demo.branchesOf(id);
  const named = (name) => branches.find((branch) => branch.name === name);
  const change = (branch, body) => demo.api('PATCH', `/projects/${id}/branches/${branch.id}`, { branch: body });
  if (!main.protected) await change(main, { protected: true });
  const brief = named('preview/pr-1042');
  if (brief.expires_at === undefined) {
    await change(brief, { expires_at: new Date(Date.now() + 2 * 86_400_000).toISOString().replace(/\.\d+/, '') });
  }
  const { snapshots } = await demo.api('GET', `/projects/${id}/snapshots`);
  for (const name of ['before the new checkout', 'end of the quarter']) {
    if (snapshots.some((one) => one.name === name)) continue;
    await demo.api('POST', `/projects/${id}/branches/${main.id}/snapshot?${new URLSearchParams({ name })}`);
    await demo.settle(id);
  }
  const { branches: deleted } = await demo.api('GET', `/projects/${id}/branches?include_deleted=true`);
  if (deleted.some((branch) => branch.name === 'preview/pr-1029')) return;
  const body = { branch: { name: 'preview/pr-1029', parent_id: main.id } };
  const { branch } = await demo.api('POST', `/projects/${id}/branches`, body);
  await demo.settle(id);
  await demo.api('DELETE', `/projects/${id}/branches/${branch.id}`);
}

/**
 * Real ones: a database gets a name that SQL has given to another one, and one is deleted that SQL has made a template.
 * Each on a branch of its own, because a change that was refused stays to be made, and is in the way of the next one.
 */
async function makeFailures(demo, id) {
  const { operations } = await demo.api('GET', `/projects/${id}/operations?limit=100`);
  const failed = new Set(operations.filter(({ status }) => status === 'error').map((one) => one.branch_id));
  for (const [name, fail] of [
    ['dev/ada', failToRename],
    ['staging', failToDelete],
  ]) {
    const { id: branchId } = (await demo.branchesOf(id)).find((branch) => branch.name === name);
    if (failed.has(branchId)) continue;
    demo.say(`shop: an operation that fails on ${name}`);
    await fail(demo, id, branchId);
  }
}

async function failToRename(demo, id, branchId) {
  const path = `/projects/${id}/branches/${branchId}/databases`;
  const uri = await demo.uriOf(id, branchId);
  const { databases } = await demo.api('GET', path);
  if (!databases.some(({ name }) => name === 'ledger')) {
    await demo.api('POST', path, { database: { name: 'ledger', owner_name: 'neondb_owner' } });
    await demo.settle(id);
  }
  const archives = await demo.sql(uri, "select oid from pg_database where datname = 'archive'");
  if (archives.length === 0) await demo.sql(uri, 'create database archive');
  await demo.api('PATCH', `${path}/ledger`, { database: { name: 'archive' } });
  await demo.settle(id);
}

async function failToDelete(demo, id, branchId) {
  const path = `/projects/${id}/branches/${branchId}`;
  const { roles } = await demo.api('GET', `${path}/roles`);
  if (!roles.some(({ name }) => name === 'reporting')) {
    await demo.api('POST', `${path}/roles`, { role: { name: 'reporting' } });
    await demo.settle(id);
  }
  const { databases } = await demo.api('GET', `${path}/databases`);
  if (!databases.some(({ name }) => name === 'reports')) {
    await demo.api('POST', `${path}/databases`, { database: { name: 'reports', owner_name: 'reporting' } });
    await demo.settle(id);
  }
  await demo.sql(await demo.uriOf(id, branchId, 'reporting'), 'alter database reports is_template true');
  await demo.api('DELETE', `${path}/databases/reports`);
  await demo.settle(id);
}
