/** Catnap, its worker or the parent's server dies while a branch or a replica is copied: no half of it is seen. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { historySlot } from '../../src/compute/interface/own-logins.ts';
import { eventually, randomMoment } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

let program: Program;
let projectId: string;
let branchId: string;
let primaryId: string;
let uri: string;

const rounds = Number(process.env.CATNAP_TEST_COPY_KILLS ?? 1);
const rows = '20000';
const folder = (...names: string[]) => join(program.home.path, 'projects', projectId, ...names);
const uriOf = (endpointId: string) => uri.replaceAll(primaryId, endpointId);

beforeAll(async () => {
  program = await Program.create();
  await program.start();
  const { body } = await program.api('POST', '/projects', { project: { name: 'copied' } });
  projectId = body.project.id;
  branchId = body.branch.id;
  primaryId = body.endpoints[0].id;
  uri = body.connection_uris[0].connection_uri;
  await ask(uri, `create table t as select n, repeat('x', 500) as x from generate_series(1, ${rows}) n`);
});
afterAll(() => program.destroy());

const endpoints = [{ type: 'read_write' }];
const makeBranch = (name: string) =>
  program.api('POST', `/projects/${projectId}/branches`, { branch: { name, parent_id: branchId }, endpoints });

/** What is neither a branch nor an endpoint, and slots that nobody owns. */
async function leftovers(): Promise<string[]> {
  const found = (await readdir(folder(), { recursive: true }).catch(() => [] as string[])).filter((name) =>
    /(^|\/)\.[^/]*$/.test(name),
  );
  const slots = await readdir(folder('branches', branchId, 'pgdata', 'pg_replslot'));
  return [...found, ...slots.filter((name) => name.startsWith('catnap_clone'))];
}

async function expectWhole(branch: { id: string }, endpointId: string): Promise<void> {
  await program.settle(projectId);
  const { body } = await program.api('GET', `/projects/${projectId}/branches/${branch.id}`);
  expect(body.branch.current_state).toBe('ready');
  expect(await ask(uriOf(endpointId), 'select count(*) from t where length(x) = 500')).toBe(rows);
}

async function removeBranch(id: string): Promise<void> {
  expect((await program.api('DELETE', `/projects/${projectId}/branches/${id}?hard_delete=true`)).status).toBe(200);
  await program.settle(projectId);
}

describe('kill -9 during a copy', () => {
  it('of Catnap loses no branch, leaves no half of one, and the parent never notices', async () => {
    const started = await ask(uri, 'select pg_postmaster_start_time()');
    for (let round = 0; round < rounds; round++) {
      const { body } = await makeBranch(`round ${round}`);
      await randomMoment(800);
      await program.killHard();
      await program.start();
      await expectWhole(body.branch, body.endpoints[0].id);
      await removeBranch(body.branch.id);
    }
    await eventually(async () => expect(await leftovers()).toEqual([]));
    expect(await ask(uri, 'select pg_postmaster_start_time()')).toBe(started);
  });

  it('of the worker is the same', async () => {
    for (let round = 0; round < rounds; round++) {
      const { body } = await makeBranch(`worker ${round}`);
      await randomMoment(600);
      for (const pid of await program.processPids('worker')) process.kill(pid, 'SIGKILL');
      await expectWhole(body.branch, body.endpoints[0].id);
      await removeBranch(body.branch.id);
    }
    await eventually(async () => expect(await leftovers()).toEqual([]));
  });

  it('of the parent’s server fails the copy, which then succeeds', async () => {
    for (let round = 0; round < rounds; round++) {
      const { body } = await makeBranch(`server ${round}`);
      await randomMoment(600);
      for (const pid of await program.serverPids(primaryId)) process.kill(pid, 'SIGKILL');
      await expectWhole(body.branch, body.endpoints[0].id);
      expect(await ask(uri, 'select count(*) from t')).toBe(rows);
      await removeBranch(body.branch.id);
    }
    await eventually(async () => expect(await leftovers()).toEqual([]));
  });

  it('of Catnap while a replica is made, or deleted, leaves a replica or nothing', async () => {
    for (let round = 0; round < rounds; round++) {
      const input = { endpoint: { branch_id: branchId, type: 'read_only' } };
      const { body } = await program.api('POST', `/projects/${projectId}/endpoints`, input);
      await randomMoment(800);
      await program.killHard();
      await program.start();
      const { id } = body.endpoint;
      await program.settle(projectId);
      expect(await ask(uriOf(id), 'select count(*) from t')).toBe(rows);
      await program.api('DELETE', `/projects/${projectId}/endpoints/${id}`);
      await randomMoment(100);
      await program.killHard();
      await program.start();
      await eventually(async () => expect(await readdir(folder('endpoints'))).toEqual([primaryId]));
      // A base image that is being made has a slot of its own meanwhile.
      await eventually(async () => {
        const slots = await readdir(folder('branches', branchId, 'pgdata', 'pg_replslot'));
        expect(slots.filter((name) => name !== historySlot)).toEqual([]);
      });
    }
    await eventually(async () => expect(await leftovers()).toEqual([]));
  });
});
