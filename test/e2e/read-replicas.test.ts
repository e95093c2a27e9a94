/** Read replicas through the front door: made over the API, read by their own hosts, asleep and awake on their own. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { historySlot } from '../../src/compute/interface/own-logins.ts';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

let program: Program;
let projectId: string;
let branchId: string;
let primaryId: string;
let uri: string;
const replicas: string[] = [];

const endpoints = () => `/projects/${projectId}/endpoints`;
/** The same login on another endpoint. */
const uriOf = (endpointId: string) => uri.replaceAll(primaryId, endpointId);
const countOn = (endpointId: string) => ask(uriOf(endpointId), 'select count(*) from t');
const stateOf = async (id: string) => (await program.api('GET', `${endpoints()}/${id}`)).body.endpoint.current_state;

async function suspend(id: string): Promise<void> {
  expect((await program.api('POST', `${endpoints()}/${id}/suspend`)).status).toBe(200);
  await eventually(async () => expect(await stateOf(id)).toBe('idle'));
  expect(await program.serverPids(id)).toEqual([]);
}

async function addReplica(more: object = {}): Promise<string> {
  const reply = await program.api('POST', endpoints(), {
    endpoint: { branch_id: branchId, type: 'read_only', ...more },
  });
  expect(reply.status).toBe(201);
  expect(reply.body.endpoint).toMatchObject({ type: 'read_only', current_state: 'init', pending_state: 'active' });
  expect(reply.body.operations.map(({ action }: { action: string }) => action)).toEqual(['start_compute']);
  return reply.body.endpoint.id;
}

async function slotFolders(): Promise<string[]> {
  const data = join(program.home.path, 'projects', projectId, 'branches', branchId, 'pgdata');
  return (await readdir(join(data, 'pg_replslot'))).filter((name) => name !== historySlot);
}

beforeAll(async () => {
  program = await Program.create();
  await program.start();
  const { body } = await program.api('POST', '/projects', { project: { name: 'replicated' } });
  projectId = body.project.id;
  branchId = body.branch.id;
  primaryId = body.endpoints[0].id;
  uri = body.connection_uris[0].connection_uri;
  await ask(uri, 'create table t as select n from generate_series(1, 100) n');
});
afterAll(() => program.destroy());

describe('read replicas', () => {
  it('are made while the primary sleeps, which wakes it, and each has its own host and size', async () => {
    await suspend(primaryId);
    replicas.push(await addReplica(), await addReplica({ autoscaling_limit_max_cu: 1 }));
    for (const id of replicas) expect(await countOn(id)).toBe('100');
    expect(await stateOf(primaryId)).toBe('active');
    const { body } = await program.api('GET', endpoints());
    expect(new Set(body.endpoints.map(({ host }: { host: string }) => host)).size).toBe(3);
    expect(await slotFolders()).toHaveLength(2);
  });

  it('refuse writes', async () => {
    const [id = ''] = replicas;
    await expect(ask(uriOf(id), 'insert into t values (0)')).rejects.toMatchObject({ code: '25006' });
    expect(await ask(uriOf(id), 'select pg_is_in_recovery()')).toBe('true');
  });

  it('serve while the primary sleeps, and catch up when it is back', async () => {
    const [id = ''] = replicas;
    await suspend(primaryId);
    expect(await countOn(id)).toBe('100');
    expect(await stateOf(primaryId)).toBe('idle');
    await ask(uri, 'insert into t values (101)');
    for (const replica of replicas) await eventually(async () => expect(await countOn(replica)).toBe('101'));
    await eventually(async () => {
      const { body } = await program.api('GET', `${endpoints()}/${id}`);
      expect(body.endpoint).toMatchObject({ replication_lag_bytes: 0, replication_lag_seconds: 0 });
    });
  });

  it('sleep and wake on their own', async () => {
    const [id = ''] = replicas;
    await suspend(id);
    await ask(uri, 'insert into t values (102)');
    await suspend(primaryId);
    expect(await countOn(id)).toMatch(/^10[12]$/);
    expect(await stateOf(id)).toBe('active');
    expect(await stateOf(primaryId)).toBe('idle');
    await ask(uri, 'select 1');
    await eventually(async () => expect(await countOn(id)).toBe('102'));
  });

  it('know passwords and roles that were changed on the primary', async () => {
    const [id = ''] = replicas;
    const path = `/projects/${projectId}/branches/${branchId}/roles`;
    const reply = await program.api('POST', path, { role: { name: 'reader' } });
    expect(reply.status).toBe(201);
    await program.settle(projectId);
    const login = new URL(uriOf(id));
    login.username = 'reader';
    login.password = reply.body.role.password;
    await eventually(async () => expect(await ask(login.href, 'select current_user')).toBe('reader'));
    const { body } = await program.api('GET', path);
    expect(body.roles.map(({ name }: { name: string }) => name)).toEqual(['neondb_owner', 'reader']);
  });

  it('move to another branch that has a primary, and serve that one', async () => {
    const [id = ''] = replicas;
    const made = await program.api('POST', `/projects/${projectId}/branches`, {
      branch: { name: 'elsewhere', parent_id: branchId },
      endpoints: [{ type: 'read_write' }],
    });
    await program.settle(projectId);
    await ask(uriOf(made.body.endpoints[0].id), 'delete from t');
    const move = async (target: string) => {
      const { status, body } = await program.api('PATCH', `${endpoints()}/${id}`, { endpoint: { branch_id: target } });
      expect([status, body.endpoint.branch_id, body.endpoint.pending_state]).toEqual([200, target, 'idle']);
      await program.settle(projectId);
      expect(await program.serverPids(id)).toEqual([]);
    };
    await move(made.body.branch.id);
    const { body: done } = await program.api('GET', `/projects/${projectId}/operations?limit=6`);
    await eventually(async () => {
      const slots = await slotFolders();
      expect(slots, JSON.stringify({ slots, done, output: program.output.slice(-2_000) })).toHaveLength(1);
    });
    await eventually(async () => expect(await countOn(id)).toBe('0'));
    await expect(ask(uriOf(id), 'insert into t values (0)')).rejects.toMatchObject({ code: '25006' });
    await move(branchId);
    expect(await countOn(id)).toBe('102');
    // The copy that it is built from has a slot of its own for a moment.
    await eventually(async () => expect(await slotFolders()).toHaveLength(2));
    expect(
      (await program.api('DELETE', `/projects/${projectId}/branches/${made.body.branch.id}?hard_delete=true`)).status,
    ).toBe(200);
    await program.settle(projectId);
  });

  it('are neither made for a branch that has no primary, nor moved there', async () => {
    const made = await program.api('POST', `/projects/${projectId}/branches`, { branch: { name: 'bare' } });
    const bare = made.body.branch.id;
    const refused = await program.api('POST', endpoints(), { endpoint: { branch_id: bare, type: 'read_only' } });
    expect(refused.status).toBe(422);
    expect(refused.body.message).toMatch(/this branch has none/);
    const moved = await program.api('PATCH', `${endpoints()}/${replicas[0]}`, { endpoint: { branch_id: bare } });
    expect(moved.status).toBe(422);
  });

  it('are taken from a live parent, whose branch has no slots of its own', async () => {
    const reply = await program.api('POST', `/projects/${projectId}/branches`, {
      branch: { name: 'child', parent_id: branchId },
      endpoints: [{ type: 'read_write' }, { type: 'read_only' }],
    });
    expect(reply.status).toBe(201);
    await program.settle(projectId);
    const ids: string[] = reply.body.endpoints.map(({ id }: { id: string }) => id);
    for (const id of ids) expect(await countOn(id)).toBe('102');
    expect(
      (await program.api('DELETE', `/projects/${projectId}/branches/${reply.body.branch.id}?hard_delete=true`)).status,
    ).toBe(200);
    await program.settle(projectId);
    for (const id of ids) expect(await program.serverPids(id)).toEqual([]);
  });

  it('follow a primary that has grown, with at least its settings', async () => {
    const [id = ''] = replicas;
    const size = { autoscaling_limit_min_cu: 2, autoscaling_limit_max_cu: 2 };
    expect((await program.api('PATCH', `${endpoints()}/${primaryId}`, { endpoint: size })).status).toBe(200);
    await program.settle(projectId);
    const connections = await ask(uri, 'show max_connections');
    await eventually(async () => expect(await ask(uriOf(id), 'show max_connections')).toBe(connections));
    await ask(uri, 'create table grown as select 1 as one');
    await eventually(async () => expect(await ask(uriOf(id), 'select one from grown')).toBe('1'));
  });

  it('leave nothing behind when they are deleted, whether the primary is awake or not', async () => {
    const [first = '', second = ''] = replicas;
    expect((await program.api('DELETE', `${endpoints()}/${first}`)).status).toBe(200);
    await eventually(async () => expect(await slotFolders()).toHaveLength(1));
    await suspend(primaryId);
    expect((await program.api('DELETE', `${endpoints()}/${second}`)).status).toBe(200);
    await eventually(async () => expect(await slotFolders()).toEqual([]));
    await eventually(async () => {
      const left = await readdir(join(program.home.path, 'projects', projectId, 'endpoints'));
      expect(left).toEqual([primaryId]);
    });
    for (const id of replicas) expect(await program.serverPids(id)).toEqual([]);
    expect(await ask(uri, 'select count(*) from t')).toBe('102');
  });
});
