import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';
import { eventually } from '../../../test/helpers/eventually.ts';
import { recordBackup } from '../../core/backup.ts';
import { readScope } from '../../core/context.ts';

const url = 'file:///mnt/backup';
const backup = { url, s3: undefined, bytesPerSecond: undefined, delaySeconds: 30 };
const at = '2026-11-16T08:00:00.000Z';
const history = {
  projectId: 'quiet-cat-1',
  historyId: '00aa11bb',
  branchId: 'br-quiet-cat-1',
  localUntil: { at, lsn: '0/2000000' },
  storedFrom: { at, lsn: '0/1000000' },
  storedUntil: { at, lsn: '0/2000000' },
  baseCount: 1,
  storedBytes: 1_000,
  waitingBytes: 0,
  gapCount: 0,
  problem: null,
};

describe('with a store', () => {
  let api: TestApi;
  const read = async () => (await api.call('GET', '/api/v2/backup')).json();
  const record = (report: Partial<Parameters<typeof recordBackup>[2]>) =>
    recordBackup(readScope(api.core), url, {
      histories: [],
      unmatched: [],
      gone: [],
      problem: null,
      now: new Date(),
      ...report,
    });

  beforeAll(async () => {
    api = await makeApi({ backup });
  });

  afterAll(() => api.close());

  test('nothing uploaded yet is said aloud', async () => {
    expect(await read()).toMatchObject({
      state: 'failing',
      url,
      histories: [],
      alerts: [expect.stringMatching(/^Nothing has been/)],
    });
  });

  test('what is uploaded is listed', async () => {
    await record({ histories: [history] });
    expect(await read()).toMatchObject({
      state: 'ok',
      alerts: [],
      stored_bytes: 1_000,
      histories: [{ history_id: '00aa11bb', behind_seconds: 0, stored_lsn: '0/2000000', stored_from: at }],
    });
  });

  /** As if what the store lacks had been there for so long. */
  const age = (minutes: number) =>
    api.core.database.sql`
      update backup_histories set behind_since = behind_since - ${minutes}::int * interval '1 minute',
        stored_at = stored_at - ${minutes}::int * interval '1 minute'`;

  test('a branch that is behind, has lost moments or cannot be uploaded is an alert', async () => {
    // However long nothing was written before: it is behind from what was.
    await record({ histories: [{ ...history, localUntil: { at, lsn: '0/3000000' }, waitingBytes: 5 }] });
    expect(await read()).toMatchObject({ state: 'ok', alerts: [], waiting_bytes: 5 });
    await age(6);
    const behind = await read();
    expect(behind).toMatchObject({ state: 'behind', waiting_bytes: 5 });
    expect(behind.alerts).toEqual([expect.stringMatching(/^1 branches are behind, the worst by \d+ seconds\.$/)]);
    await record({ histories: [{ ...history, gapCount: 2 }] });
    expect((await read()).alerts).toEqual([expect.stringContaining('2 gaps')]);
    await record({ histories: [{ ...history, problem: 'no rights' }] });
    expect((await read()).alerts).toEqual([expect.stringContaining('no rights')]);
    await record({ histories: [{ ...history, baseCount: 0, storedFrom: null, storedUntil: null }] });
    expect((await read()).alerts).toEqual([]);
    await age(6);
    expect((await read()).alerts).toEqual([expect.stringContaining('no base image in the store')]);
  });

  test('a branch falls behind though the store cannot be asked', async () => {
    await record({ histories: [history] });
    const { projectId, historyId, branchId } = history;
    const ahead = { projectId, historyId, branchId, localUntil: { at, lsn: '0/3000000' } };
    await record({ unmatched: [ahead], problem: 'no answer' });
    await age(6);
    await record({ unmatched: [ahead], problem: 'no answer' });
    expect((await read()).alerts).toEqual([
      expect.stringContaining('no answer'),
      expect.stringMatching(/^1 branches are behind, the worst by 36\d seconds\.$/),
    ]);
    await record({ histories: [{ ...history, localUntil: ahead.localUntil, storedUntil: ahead.localUntil }] });
    expect(await read()).toMatchObject({ state: 'ok', alerts: [], histories: [{ behind_seconds: 0 }] });
  });

  test('a branch that came and went while the store could not be asked is not late afterwards', async () => {
    const { projectId, historyId, branchId, localUntil } = history;
    const passing = { projectId, historyId: '77aa88bb', branchId: 'br-passing-1', localUntil };
    const here = { projectId, historyId, branchId, localUntil };
    await record({ unmatched: [here, passing], problem: 'no answer' });
    await record({ unmatched: [here], problem: 'no answer' });
    await age(6);
    const gone = [{ projectId, historyId: '99cc00dd' }];
    await record({ histories: [history], gone });
    const found = await read();
    expect(found).toMatchObject({ state: 'ok', alerts: [] });
    const ids = found.histories.map((one: { history_id: string }) => one.history_id).sort();
    expect(ids).toEqual([historyId, '99cc00dd']);
    await record({ histories: [history] });
  });

  test('a failure is shown with its beginning, until it is over', async () => {
    await record({ histories: [history], problem: 'no answer' });
    const first = await read();
    expect(first).toMatchObject({ state: 'failing', alerts: [expect.stringContaining('no answer')] });
    await record({ problem: 'still no answer' });
    expect((await read()).failing_since).toBe(first.failing_since);
    await record({ histories: [history] });
    expect(await read()).toMatchObject({ state: 'ok', alerts: [], failing_since: null });
  });

  test('a history that only the store has is kept for a week', async () => {
    const gone = [{ projectId: history.projectId, historyId: history.historyId }];
    expect(await record({ gone })).toEqual([]);
    expect((await read()).histories).toMatchObject([{ gone_since: expect.any(String), stored_bytes: 1_000 }]);
    await api.core.database.sql`update backup_histories set gone_since = now() - interval '8 days'`;
    expect(await record({ gone })).toEqual(gone);
    expect((await read()).histories).toEqual([]);
  });

  test('a snapshot is listed with its name and the branch that it was taken of', async () => {
    const { project, branch } = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
    const path = `/api/v2/projects/${project.id}/branches/${branch.id}/snapshot?name=before`;
    const { snapshot } = (await api.call('POST', path)).json();
    const ids = { projectId: project.id, branchId: snapshot.id };
    await record({ histories: [{ ...history, ...ids, historyId: '55ee66ff' }] });
    const [found] = (await read()).histories;
    expect(found).toMatchObject({
      history_id: '55ee66ff',
      branch_id: branch.id,
      branch_name: branch.name,
      snapshot_id: snapshot.id,
      snapshot_name: 'before',
    });
    await record({ histories: [{ ...history, ...ids, historyId: '55ee66ff', problem: 'no rights' }] });
    expect((await read()).alerts).toEqual([expect.stringMatching(/ \/ snapshot before: no rights$/)]);
    await api.core.database.sql`delete from snapshots`;
    expect((await read()).histories).toMatchObject([{ snapshot_id: snapshot.id, snapshot_name: null }]);
    await api.core.database.sql`delete from backup_histories`;
  });

  test('a branch that was deleted before its first base image went up is not late', async () => {
    const { project } = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
    const branches = `/api/v2/projects/${project.id}/branches`;
    const { branch } = (await api.call('POST', branches, { body: { branch: { name: 'short' } } })).json();
    const ids = { projectId: project.id, branchId: branch.id };
    await record({ histories: [{ ...history, ...ids, baseCount: 0, storedFrom: null, storedUntil: null }] });
    await age(6);
    expect((await read()).state).toBe('behind');
    await api.core.database.sql`update branches set deleting_at = now() where id = ${branch.id}`;
    expect(await read()).toMatchObject({ state: 'ok', alerts: [], histories: [{ branch_name: 'short' }] });
    await api.core.database.sql`update branches set deleting_at = null where id = ${branch.id}`;
    await api.core.database.sql`update projects set deleting_at = now() where id = ${project.id}`;
    expect((await read()).state).toBe('ok');
    await api.core.database.sql`delete from backup_histories`;
  });

  test('a verification that failed is an alert', async () => {
    await record({});
    await api.core.database.sql`
      update backup_state set verified_at = now(), verified_ok = false, verification = 'a table is damaged'`;
    expect((await read()).alerts).toEqual([expect.stringContaining('a table is damaged')]);
    await eventually(async () => {
      const { body } = await api.app.inject({ method: 'GET', url: '/metrics' });
      expect(body).toMatch(/^catnap_backup_verified_ok 0$/m);
    });
  });

  test('only the operator is told', async () => {
    expect((await api.call('GET', '/api/v2/backup', { token: api.strangerToken })).statusCode).toBe(403);
  });

  test('metrics say it too', async () => {
    await record({ histories: [{ ...history, waitingBytes: 7 }], problem: 'no answer' });
    // Two scrapes within a tenth of a second get the same answer.
    await eventually(async () => {
      const { body } = await api.app.inject({ method: 'GET', url: '/metrics' });
      expect(body).toMatch(/^catnap_backup_failing 1$/m);
      expect(body).toMatch(/^catnap_backup_waiting_bytes 7$/m);
    });
  });
});

test('without a store the state is off', async () => {
  const api = await makeApi();
  const reply = (await api.call('GET', '/api/v2/backup')).json();
  await api.close();
  expect(reply).toMatchObject({ state: 'off', alerts: [], url: null, histories: [] });
});
