import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';
import { drain } from '../../../test/helpers/drain.ts';
import { FakeDriver } from '../../compute/fake/fake-driver.ts';
import { NoSuchMomentError } from '../../compute/interface/driver.ts';
import { commandScope } from '../../core/context.ts';
import { requestPastSchema } from '../../core/past-schema.ts';
import { asBranchId, asProjectId } from '../../lib/ids.ts';
import { createLogger } from '../../lib/log.ts';
import type { LogPosition } from '../../lib/moments.ts';
import { makeHistory } from '../../reconcilers/history.ts';
import { retention } from '../../reconcilers/retention.ts';

const log = createLogger({ level: 'silent', process: 'test' });

let api: TestApi;
/** The driver of the project whose operations a request waits for. */
let worker = new FakeDriver();
beforeAll(async () => {
  api = await makeApi({}, undefined, (core) => ({
    awaitOperation: async (id) => {
      await drain(core, worker);
      const [row] = await core.database.sql`select status, error from operations where id = ${id}`;
      return { status: row?.status ?? 'gone', error: row?.error ?? null };
    },
  }));
});
afterAll(() => api.close());

/** A project on a driver of its own. */
class Stage {
  readonly driver = new FakeDriver();
  base = '';
  root = '';
  #projectPath = '';

  async begin(): Promise<this> {
    const made = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
    this.#projectPath = `/api/v2/projects/${made.project.id}`;
    this.base = `${this.#projectPath}/branches`;
    this.root = made.branch.id;
    worker = this.driver;
    await this.settle();
    return this;
  }

  async project(method: 'GET' | 'PATCH', body?: object) {
    return (await api.call(method, this.#projectPath, body === undefined ? {} : { body })).json();
  }

  async call(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object) {
    const reply = await api.call(method, `${this.base}${path}`, body === undefined ? {} : { body });
    return { status: reply.statusCode, body: reply.json() };
  }

  /** Everything queued is done, and what the driver knows of the past is on record. */
  async settle(): Promise<void> {
    await drain(api.core, this.driver);
    await makeHistory().turn({ core: api.core, driver: this.driver, log });
  }

  async until(branch = this.root): Promise<LogPosition> {
    await this.settle();
    const [row] = await api.core.database.sql`select history from branches where id = ${branch}`;
    return row?.history.until;
  }

  /** A role of this name is made, and the moment after it returned. */
  async role(name: string, branch = this.root): Promise<LogPosition> {
    expect((await this.call('POST', `/${branch}/roles`, { role: { name } })).status).toBe(201);
    return this.until(branch);
  }

  create = (branch: object, rest: object = {}) => this.call('POST', '', { branch, ...rest });
  restore = (id: string, body: object) => this.call('POST', `/${id}/restore`, body);
  branch = async (id: string) => (await this.call('GET', `/${id}`)).body.branch;

  async roles(branch: string): Promise<string[]> {
    const { body } = await this.call('GET', `/${branch}/roles`);
    return body.roles.map(({ name }: { name: string }) => name).filter((name: string) => name !== 'neondb_owner');
  }

  password = async (branch: string, role: string) =>
    (await this.call('GET', `/${branch}/roles/${role}/reveal_password`)).body.password;

  async lastOperation(branch: string) {
    const { operations } = (await api.call('GET', `${this.#projectPath}/operations`)).json();
    return operations.find((operation: { branch_id: string }) => operation.branch_id === branch);
  }
}

const stage = () => new Stage().begin();

describe('a branch from a moment', () => {
  test('by time and by LSN has the roles and passwords of then, and shows the moment', async () => {
    const s = await stage();
    const early = await s.role('early');
    const password = await s.password(s.root, 'early');
    await s.role('late');
    const byTime = (await s.create({ name: 'by_time', parent_timestamp: early.at })).body.branch;
    expect(byTime).toMatchObject({ parent_id: s.root, parent_timestamp: `${early.at.slice(0, 19)}Z` });
    const byLsn = (await s.create({ name: 'by_lsn', parent_lsn: early.lsn })).body.branch;
    expect(byLsn).toMatchObject({ parent_id: s.root, parent_lsn: early.lsn });
    await s.settle();
    for (const { id } of [byTime, byLsn]) {
      expect(await s.branch(id)).toMatchObject({
        current_state: 'ready',
        parent_lsn: early.lsn,
        receipt: { method: 'copy', lsn: early.lsn },
        logical_size: expect.any(Number),
      });
      expect(await s.roles(id)).toEqual(['early']);
      expect(await s.password(id, 'early')).toBe(password);
      expect([...(s.driver.branches.get(id)?.roles.keys() ?? [])].toSorted()).toEqual(['early', 'neondb_owner']);
    }
    expect(await s.roles(s.root)).toEqual(['early', 'late']);
  });

  test('a password that was changed since is not passed off as the old one', async () => {
    const s = await stage();
    const before = await s.role('app');
    const verifier = s.driver.branches.get(s.root)?.roles.get('app')?.verifier;
    await s.call('POST', `/${s.root}/roles/app/reset_password`);
    await s.settle();
    const { branch } = (await s.create({ parent_timestamp: before.at })).body;
    await s.settle();
    expect(s.driver.branches.get(branch.id)?.roles.get('app')?.verifier).toBe(verifier);
    expect((await s.call('GET', `/${branch.id}/roles/app/reveal_password`)).status).not.toBe(200);
  });

  test('with a compute, and emptied, it works as from the head', async () => {
    const s = await stage();
    const early = await s.role('early');
    await s.role('late');
    const made = await s.create(
      { init_source: 'schema-only', parent_timestamp: early.at },
      { endpoints: [{ type: 'read_write' }] },
    );
    expect(made.body.operations).toMatchObject([{ action: 'create_branch' }, { action: 'start_compute' }]);
    await s.settle();
    expect(s.driver.calls.map(({ method }) => method)).toContain('emptyBranch');
    expect(s.driver.computes.get(made.body.endpoints[0].id)?.process).not.toBeNull();
    expect(await s.roles(made.body.branch.id)).toEqual(['early']);
  });

  test('before its parent began it comes from the branch before that', async () => {
    const s = await stage();
    const early = await s.role('early');
    await s.role('late');
    const { branch: parent } = (await s.create({ name: 'parent' })).body;
    await s.settle();
    const { branch } = (await s.create({ parent_id: parent.id, parent_timestamp: early.at })).body;
    await s.settle();
    expect(await s.branch(branch.id)).toMatchObject({ parent_id: parent.id, current_state: 'ready' });
    expect(await s.roles(branch.id)).toEqual(['early']);
  });

  test('while it is made, its parent can start and stop, but not lose its history', async () => {
    const s = await stage();
    const early = await s.role('early');
    const { branch } = (await s.create({ parent_timestamp: early.at })).body;
    const [operation] = await api.core.database.sql`
      select exclusive_keys, shared_keys from operations where branch_id = ${branch.id}`;
    expect(operation?.exclusiveKeys).toEqual([`branch:${branch.id}`]);
    expect(operation?.sharedKeys).toEqual([`history:${s.root}`, expect.stringMatching(/^project:/)]);
    await s.settle();
  });

  test.each([
    [{ parent_lsn: '0/1', parent_timestamp: '2026-01-01T00:00:00Z' }, 400, 'exclude each other'],
    [{ parent_lsn: 'x' }, 400, 'branch.parent_lsn'],
    [{ parent_timestamp: 'yesterday' }, 400, 'branch.parent_timestamp must be a time'],
    [{ parent_timestamp: '2999-01-01T00:00:00Z' }, 422, 'body.branch.parent_timestamp must not be in the future'],
    [{ parent_timestamp: '2020-01-01T00:00:00Z' }, 422, 'which reaches from'],
    [{ parent_lsn: '0/1' }, 422, 'which reaches from'],
  ])('%j is %i', async (branch, status, message) => {
    const s = await stage();
    const before = (await s.call('GET', '')).body.branches.length;
    const reply = await s.create(branch);
    expect([reply.status, reply.body.message]).toEqual([status, expect.stringContaining(message)]);
    expect((await s.call('GET', '')).body.branches).toHaveLength(before);
  });

  test('what the driver cannot give ends the operation at once, and says why', async () => {
    const s = await stage();
    const early = await s.role('early');
    s.driver.failNext('createBranch', new NoSuchMomentError('the history has a gap there'));
    const { branch } = (await s.create({ parent_timestamp: early.at })).body;
    await s.settle();
    expect(await s.lastOperation(branch.id)).toMatchObject({
      status: 'error',
      error: 'the history has a gap there',
      failures_count: 0,
    });
    expect(await s.branch(branch.id)).toMatchObject({ current_state: 'init' });
    expect((await s.call('DELETE', `/${branch.id}`)).status).toBe(200);
    await s.settle();
  });
});

describe('the schema at a moment', () => {
  const tables = (...names: readonly string[]) =>
    ['-- neondb', ...names.map((name) => `CREATE TABLE ${name} ();`), ''].join('\n');

  test('is read from a server that nobody else sees, and nothing of it stays', async () => {
    const s = await stage();
    const early = await s.role('early');
    await s.role('late');
    for (const query of [`timestamp=${early.at}`, `lsn=${early.lsn}`]) {
      const reply = await s.call('GET', `/${s.root}/schema?db_name=neondb&${query}`);
      expect(reply.body).toEqual({ sql: tables('early', 'neondb_owner') });
    }
    expect([...s.driver.branches.keys()]).toEqual([s.root]);
    expect(s.driver.computes.size).toBe(1);
    expect(await api.core.database.sql`select 1 from schema_reads`).toHaveLength(0);
  });

  test('can be compared with another moment, of a branch without a compute too', async () => {
    const s = await stage();
    const early = await s.role('early');
    const late = await s.role('late');
    const self = `/${s.root}/compare_schema?db_name=neondb&base_branch_id=${s.root}`;
    const { body } = await s.call('GET', `${self}&base_timestamp=${early.at}&lsn=${late.lsn}`);
    expect(body.diff).toMatch(/^--- \S+@2\S+\n\+\+\+ \S+@0\/\S+\n/);
    expect(body.diff).toContain('+CREATE TABLE late ();');
    const { branch } = (await s.create({ name: 'bare' })).body;
    const { at } = await s.until(branch.id);
    expect((await s.call('GET', `/${branch.id}/schema?db_name=neondb&timestamp=${at}`)).status).toBe(200);
  });

  test('what cannot be had is said, and only so many are read at once', async () => {
    const s = await stage();
    const early = await s.role('early');
    const schema = (query: string) => s.call('GET', `/${s.root}/schema?${query}`);
    const at = `timestamp=${early.at}`;
    expect(await schema(`db_name=nowhere&${at}`)).toMatchObject({
      status: 404,
      body: { message: 'database not found' },
    });
    expect(await schema('db_name=neondb&timestamp=2020-01-01T00:00:00Z')).toMatchObject({ status: 422 });
    expect(await schema(`db_name=neondb&${at}&lsn=0/1`)).toMatchObject({ status: 400 });
    s.driver.failNext('createBranch', new NoSuchMomentError('the history has a gap there'));
    expect(await schema(`db_name=neondb&${at}`)).toMatchObject({
      status: 422,
      body: { message: 'the history has a gap there' },
    });
    const address = { projectId: asProjectId(s.base.split('/')[4] ?? ''), branchId: asBranchId(s.root) };
    const ask = (database: string) =>
      api.core.database.transaction((tx) =>
        requestPastSchema(commandScope(api.core, tx), api.caller, address, {
          database,
          moment: { timestamp: early.at },
          fields: { lsn: 'lsn', timestamp: 'timestamp' },
        }),
      );
    const [first, again] = [await ask('one'), await ask('one')];
    expect(again).toEqual(first);
    await ask('two');
    await expect(ask('three')).rejects.toMatchObject({ kind: 'unavailable' });
    await s.settle();
    expect([...s.driver.branches.keys()]).toEqual([s.root]);
    // Nobody has come back for these.
    const { sql } = api.core.database;
    expect(await sql`update schema_reads set created_at = now() - interval '6 minutes' returning 1`).toHaveLength(2);
    await retention.turn({ core: api.core, driver: s.driver, log });
    expect(await sql`select 1 from schema_reads`).toHaveLength(0);
  });
});

describe('what is kept', () => {
  test('is shown with its window, its gaps and its costs, and counted', async () => {
    const s = await stage();
    const early = await s.role('early');
    const { history } = (await s.call('GET', `/${s.root}/history`)).body;
    expect(history).toEqual({
      retention_seconds: 86_400,
      from: expect.stringMatching(/Z$/),
      until: expect.stringMatching(/Z$/),
      from_lsn: expect.stringMatching(/^0\//),
      until_lsn: early.lsn,
      gaps: [],
      base_count: 1,
      base_bytes: 0,
      log_bytes: expect.any(Number),
    });
    const fakeLog = s.driver.branches.get(s.root)?.log;
    if (fakeLog) fakeLog.gaps = [{ from: early, until: await s.role('late') }];
    await s.settle();
    const gapped = (await s.call('GET', `/${s.root}/history`)).body.history;
    expect(gapped.gaps).toMatchObject([{ from_lsn: early.lsn, until_lsn: gapped.until_lsn }]);
    const metrics = (await api.call('GET', '/metrics')).body;
    expect(metrics).toMatch(/^catnap_history_gaps 1$/m);
    expect(metrics).toMatch(/^catnap_history_behind 0$/m);
    const { branch } = (await s.create({ name: 'newborn' })).body;
    expect((await s.call('GET', `/${branch.id}/history`)).body.history).toEqual({
      retention_seconds: 86_400,
      gaps: [],
      base_count: 0,
      base_bytes: 0,
      log_bytes: 0,
    });
    await s.settle();
  });
});

describe('history_retention_seconds', () => {
  test('holds at once for every branch, by an operation', async () => {
    const s = await stage();
    const early = await s.role('early');
    expect(await s.project('GET')).toMatchObject({ project: { history_retention_seconds: 86_400 } });
    const none = { project: { history_retention_seconds: 0 } };
    expect((await s.project('PATCH', none)).operations).toMatchObject([{ action: 'apply_storage_config' }]);
    expect((await s.project('PATCH', none)).operations).toEqual([]);
    await drain(api.core, s.driver);
    expect(s.driver.branches.get(s.root)?.log.versions).toEqual([]);
    const reply = await s.create({ parent_timestamp: early.at });
    expect([reply.status, reply.body.message]).toEqual([422, expect.stringMatching(/history_retention_seconds/)]);
    await s.project('PATCH', { project: { history_retention_seconds: 60 } });
    await s.settle();
    expect((await s.create({ parent_timestamp: (await s.until()).at })).status).toBe(201);
    await s.settle();
  });
});

describe('a restore to a moment', () => {
  test('of a root, to its own past: the old state is kept with its history', async () => {
    const s = await stage();
    const early = await s.role('early');
    const password = await s.password(s.root, 'early');
    const late = await s.role('late');
    await s.role('later');
    const body = { source_branch_id: s.root, source_timestamp: early.at, preserve_under_name: 'main_old' };
    const reply = await s.restore(s.root, body);
    expect(reply.body).toMatchObject({
      branch: { id: s.root, current_state: 'resetting', pending_state: 'ready' },
      operations: [{ action: 'create_branch' }, { action: 'start_compute' }],
    });
    await s.settle();
    expect(await s.roles(s.root)).toEqual(['early']);
    expect(await s.password(s.root, 'early')).toBe(password);
    const root = await s.branch(s.root);
    expect(root).toMatchObject({ current_state: 'ready', last_reset_at: expect.any(String) });
    expect(root.parent_id).toBeUndefined();
    const old = (await s.call('GET', '?search=main_old')).body.branches[0];
    expect(await s.roles(old.id)).toEqual(['early', 'late', 'later']);
    // The restored branch begins anew; the past is with the data that it belongs to.
    expect((await s.create({ parent_timestamp: late.at })).body.message).toMatch(/outside the history/);
    const { branch } = (await s.create({ parent_id: old.id, parent_timestamp: late.at })).body;
    await s.settle();
    expect(await s.roles(branch.id)).toEqual(['early', 'late']);
  });

  test('of a child, to its own past: it hangs under what it was', async () => {
    const s = await stage();
    const { branch: dev } = (await s.create({ name: 'dev' }, { endpoints: [{ type: 'read_write' }] })).body;
    await s.settle();
    const early = await s.role('early', dev.id);
    await s.role('late', dev.id);
    const { branch: child } = (await s.create({ name: 'child', parent_id: dev.id })).body;
    await s.settle();
    const self = { source_branch_id: dev.id, preserve_under_name: 'dev_old' };
    await s.restore(dev.id, { ...self, source_lsn: early.lsn });
    await s.settle();
    const old = (await s.call('GET', '?search=dev_old')).body.branches[0];
    expect(old).toMatchObject({ parent_id: s.root });
    expect(await s.branch(dev.id)).toMatchObject({ parent_id: old.id, parent_lsn: early.lsn });
    expect(await s.branch(child.id)).toMatchObject({ parent_id: old.id });
    expect(await s.roles(dev.id)).toEqual(['early']);
    // What it can be asked for now reaches back through what it was.
    const { branch } = (await s.create({ parent_id: dev.id, parent_lsn: early.lsn })).body;
    await s.settle();
    expect(await s.roles(branch.id)).toEqual(['early']);
  });

  test('to the past of another branch', async () => {
    const s = await stage();
    const early = await s.role('early');
    const { branch: dev } = (await s.create({ name: 'dev' })).body;
    await s.role('late');
    await s.restore(dev.id, { source_branch_id: s.root, source_timestamp: early.at });
    await s.settle();
    expect(await s.branch(dev.id)).toMatchObject({ current_state: 'ready', parent_id: s.root, parent_lsn: early.lsn });
    expect(await s.roles(dev.id)).toEqual(['early']);
  });

  test('to its own past it needs a name for the old state', async () => {
    const s = await stage();
    const early = await s.role('early');
    const reply = await s.restore(s.root, { source_branch_id: s.root, source_lsn: early.lsn });
    expect([reply.status, reply.body.message]).toEqual([422, expect.stringMatching(/preserve_under_name is required/)]);
  });

  test('what the driver cannot give leaves the branch as it was', async () => {
    const s = await stage();
    const early = await s.role('early');
    s.driver.failNext('createBranch', new NoSuchMomentError('the history has a gap there'));
    const body = { source_branch_id: s.root, source_lsn: early.lsn, preserve_under_name: 'main_old' };
    await s.restore(s.root, body);
    await s.settle();
    expect(await s.branch(s.root)).toMatchObject({ current_state: 'ready' });
    expect(await s.roles(s.root)).toEqual(['early']);
    expect(s.driver.branches.size).toBe(1);
  });
});
