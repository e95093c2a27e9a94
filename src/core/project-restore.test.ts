import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { testProviders } from '../../test/helpers/providers.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { insertApiKey } from '../db/api-keys.ts';
import { json } from '../db/client.ts';
import { type CutOffQuestion, recordDelivery, selectCutOffCopies, takeDeliveryLock } from '../db/deliveries.ts';
import { selectOperationStatus } from '../db/operations.ts';
import { type ProjectRows, selectProjectRows } from '../db/project-rows.ts';
import { asOrganizationId, type OperationId } from '../lib/ids.ts';
import { createLogger } from '../lib/log.ts';
import { hashToken } from '../lib/secrets.ts';
import { OperationRunner } from '../operations/runner.ts';
import { adminKeySealContext } from './auth-integration.ts';
import { createBranch } from './branch-create.ts';
import { deleteProject } from './project.ts';
import type { CreatedProject } from './project-create.ts';
import { type Admission, admitProject, resumeAdmission } from './project-restore.ts';
import { openPassword } from './role.ts';
import { createSnapshot } from './snapshot.ts';
import { chooseIds } from './stored-project.ts';

const backedUpAt = new Date('2026-04-02T10:00:00Z');
const origin = { from: 'file:///store', installationId: 'elsewhere', at: null };
const receipt = { method: 'copy', lsn: '0/1', durationMs: 1, bytes: 1, bytesShared: 0 };
const providerProjectId = randomUUID();
const integrationId = randomUUID();

let there: TestCore;
let here: TestCore;
let made: CreatedProject;
let rows: ProjectRows;

beforeAll(async () => {
  there = await makeCore();
  here = await makeCore();
  made = await makeProject(there, 'kept');
  const address = { projectId: made.project.id, branchId: made.branch.id };
  await command(there, (scope) =>
    createBranch(scope, there.caller, made.project.id, { name: 'child', annotation: {}, endpoints: [] }),
  );
  const driver = new FakeDriver();
  await drain(there.core, driver);
  await command(there, (scope) => createSnapshot(scope, there.caller, address, { name: 'before' }));
  await drain(there.core, driver);
  await addKeyAndIntegration();
  const { sql } = there.core.database;
  const since = new Date('2026-03-31T10:00:00Z');
  const size = { meteredUntil: since, meteredSize: 1_000, logicalSize: 1_000 };
  await sql`update branches set ${sql(size)} where id = ${made.branch.id}`;
  rows = await selectProjectRows(sql, made.project.id);
});
afterAll(async () => {
  await there.close();
  await here.close();
});
beforeEach(async () => {
  await here.core.database.sql`delete from endpoints`;
  await here.core.database.sql`delete from branches`;
  await here.core.database.sql`delete from projects`;
});

async function addKeyAndIntegration(): Promise<void> {
  const { sql } = there.core.database;
  const { organizationId } = made.project;
  const tokenHash = hashToken('napi_of_the_project');
  const key = { tokenHash, kind: 'project', userId: null, name: 'ci', createdBy: there.caller.userId } as const;
  await insertApiKey(sql, { ...key, organizationId, projectId: made.project.id });
  const adminKey = there.core.box.seal('the admin key', adminKeySealContext(providerProjectId));
  await sql`insert into auth_integrations ${sql({
    id: integrationId,
    projectId: made.project.id,
    status: 'active',
    authProvider: 'stack',
    branchId: made.branch.id,
    databaseId: made.database.id,
    databaseName: made.database.name,
    roleName: made.role.name,
    providerUrl: 'http://127.0.0.1:1',
    providerProjectId,
    adminKey,
    syncedSeq: 7,
  })}`;
  await sql`
    insert into auth_user_changes (project_id, user_id, kind, user_json)
    select ${providerProjectId}, gen_random_uuid(), 'created', ${json(sql, { name: 'Ann' })} from generate_series(1, 9)`;
}

function admit(of: TestCore, asNew = false, organizationId: string | null = null): Promise<Admission> {
  const options = { ids: chooseIds(rows, asNew), asNew, organizationId: organizationId as never, origin };
  return command(of, (scope) => admitProject(scope, { rows, box: there.core.box, until: backedUpAt }, options));
}

const bring = (admission: Admission, id: string) =>
  command(here, async (scope) => {
    const { operationId } = admission.awaited.find((one) => one.id === id) ?? admission.awaited[0] ?? expect.fail();
    await recordDelivery(scope.tx, operationId, { receipt });
    return operationId;
  });

const onlyOrganization = async () => {
  const [row] = await here.core.database.sql<{ organizationId: string }[]>`
    select organization_id from organization_members where user_id = ${here.caller.userId}`;
  return row?.organizationId ?? '';
};

describe('a project of another installation', () => {
  it('comes with its ids, and with secrets that this installation opens', async () => {
    const { project, adminSecret, awaited } = await admit(here, false, await onlyOrganization());
    expect(project).toMatchObject({ id: made.project.id, name: 'kept' });
    expect(adminSecret).toMatch(/^[\w-]{43}$/);
    expect(awaited.map(({ name }) => name).toSorted()).toEqual(['before', 'child', 'main']);
    const now = await selectProjectRows(here.core.database.sql, made.project.id);
    // Branches without data are not listed by the statement that reads a backup.
    expect(now.branches).toEqual([]);
    const { sql } = here.core.database;
    const [role] = await sql`select * from roles where branch_id = ${made.branch.id} and name = ${made.role.name}`;
    expect(openPassword(here.core, made.project.id, role as never)).toBe(made.password);
    const [endpoint] = await sql`select * from endpoints where id = ${made.endpoint.id}`;
    expect(endpoint).toMatchObject({ currentState: 'idle', branchId: made.branch.id, address: null });
    const [key] = await sql`select * from api_keys where project_id = ${made.project.id}`;
    expect(key).toMatchObject({ name: 'ci', createdBy: here.caller.userId });
  });

  it('has its integration, whose users are copied again behind the position that its database knows', async () => {
    const { sql } = here.core.database;
    // A purge has left it to be removed at the provider.
    await sql`insert into auth_leftovers (provider_project_id, admin_key) values (${providerProjectId}, '')`;
    await admit(here, false, await onlyOrganization());
    expect([...(await sql`select 1 from auth_leftovers`)]).toEqual([]);
    const [integration] = await sql`
      select i.*, d.name as database from auth_integrations i join databases d on d.id = i.database_id`;
    expect(integration).toMatchObject({ id: integrationId, database: made.database.name, syncedSeq: 0 });
    const adminKey = integration?.adminKey as Uint8Array;
    expect(here.core.box.open(adminKey, adminKeySealContext(providerProjectId))).toBe('the admin key');
    const [log] = await sql<{ first: number; count: number }[]>`
      select min(seq) as first, count(*)::int as count from auth_user_changes where project_id = ${providerProjectId}`;
    expect(log?.count).toBeGreaterThanOrEqual(9);
    expect(log?.first).toBeGreaterThan(9);
  });

  it('has stored what it had until the backup, and nothing since', async () => {
    const { sql } = here.core.database;
    await admit(here, false, await onlyOrganization());
    const [span] = await sql`
      select branch_id, extract(epoch from until - since)::int as seconds, bytes, is_root from stored_spans`;
    expect(span).toEqual({ branchId: made.branch.id, seconds: 172_800, bytes: 1_000, isRoot: true });
    expect([...(await sql`select 1 from branches where metered_until is not null`)]).toEqual([]);
    const [project] = await sql`select usage from projects`;
    expect(project?.usage).toMatchObject({ period: '2026-04', storage: 34_000 });
  });

  it('needs an organization that is here', async () => {
    await expect(admit(here, false, 'org-nowhere-1')).rejects.toThrow(/no organization org-nowhere-1: --org must be/);
    await expect(admit(here)).rejects.toThrow(/its organization .* is not here: --org must be one of org-/);
  });
});

describe('what is here', () => {
  it('is never replaced', async () => {
    await admit(here, false, await onlyOrganization());
    await expect(admit(here, false, await onlyOrganization())).rejects.toThrow(/ids of the project are taken/);
    await expect(command(there, (scope) => resumeAdmission(scope, made.project.id, origin))).rejects.toThrow(
      /is here, and a restore replaces nothing.*--as-new/,
    );
  });

  it('is recovered or purged first where it was deleted', async () => {
    const other = await makeProject(there, 'deleted');
    await command(there, (scope) => deleteProject(scope, there.caller, other.project.id));
    const resumed = command(there, (scope) => resumeAdmission(scope, other.project.id, origin));
    await expect(resumed).rejects.toThrow(/is here, deleted; it can be recovered until .*catnap recover/);
  });

  it('gets a second project beside it with ids, keys and users of its own', async () => {
    const { project, awaited } = await admit(there, true);
    expect(project.id).not.toBe(made.project.id);
    expect(awaited.map(({ id, sourceId }) => id === sourceId)).toEqual([false, false, false]);
    const { sql } = there.core.database;
    const [child] = await sql`select * from branches where project_id = ${project.id} and name = 'child'`;
    const [root] = await sql`select * from branches where project_id = ${project.id} and name = 'main'`;
    expect(child?.parentId).toBe(root?.id);
    const [role] = await sql`select * from roles where branch_id = ${root?.id} and name = ${made.role.name}`;
    expect(openPassword(there.core, project.id, role as never)).toBe(made.password);
    const kept = await sql`select 1 from auth_integrations where project_id = ${project.id}`;
    expect([...kept, ...(await sql`select 1 from api_keys where project_id = ${project.id}`)]).toEqual([]);
  });
});

describe('its data', () => {
  const state = async (id: string) => {
    const [row] = await here.core.database.sql`select current_state, pending_state from branches where id = ${id}`;
    return row;
  };

  it('is used when it is there; what nobody brings any more is said', async () => {
    const admission = await admit(here, false, await onlyOrganization());
    await bring(admission, made.branch.id);
    await drain(here.core, new FakeDriver());
    expect(await state(made.branch.id)).toEqual({ currentState: 'ready', pendingState: null });
    const child = admission.awaited.find(({ name }) => name === 'child') ?? expect.fail();
    expect(await state(child.id)).toEqual({ currentState: 'init', pendingState: null });
    const ended = await selectOperationStatus(here.core.database.sql, child.operationId);
    expect(ended).toMatchObject({ status: 'error', error: expect.stringMatching(/file:\/\/\/store was cut off/) });
  });

  it('is brought by the same command again, and by no other', async () => {
    const admission = await admit(here, false, await onlyOrganization());
    await bring(admission, made.branch.id);
    await drain(here.core, new FakeDriver());
    const resume = (at: string | null) =>
      command(here, (scope) => resumeAdmission(scope, made.project.id, { ...origin, at }));
    await expect(resume('2026-01-31T12:00:00.000Z')).rejects.toThrow(/being restored from .* at its newest moment/);
    const again = await resume(null);
    expect(again?.awaited.map(({ name }) => name).toSorted()).toEqual(['before', 'child']);
    for (const { id } of again?.awaited ?? []) await bring(again ?? expect.fail(), id);
    await drain(here.core, new FakeDriver());
    const [snapshot] = await here.core.database.sql`select * from snapshots`;
    expect(snapshot).toMatchObject({ name: 'before', currentState: 'ready' });
    await expect(resume(null)).rejects.toThrow(/a restore replaces nothing/);
  });

  it('of a copy under new ids is brought by the same command again, if the first was cut off', async () => {
    const sourceIds = [...rows.branches, ...rows.snapshots].map(({ id }) => String(id));
    const { sql } = there.core.database;
    const find = (changes: Partial<CutOffQuestion> = {}) =>
      selectCutOffCopies(sql, { sourceIds, origin: elsewhere, organizationId: null, ...changes });
    const elsewhere = { ...origin, from: 'file:///of-copies' };
    const options = { ids: chooseIds(rows, true), asNew: true, organizationId: null, origin: elsewhere };
    const first = await command(there, (scope) =>
      admitProject(scope, { rows, box: there.core.box, until: backedUpAt }, options),
    );
    await drain(there.core, new FakeDriver());
    const { id } = first.project;
    expect(await find()).toEqual([id]);
    expect(await find({ organizationId: made.project.organizationId })).toEqual([id]);
    expect(await find({ organizationId: asOrganizationId('org-other-1') })).toEqual([]);
    expect(await find({ origin: { ...elsewhere, at: '2026-01-31T12:00:00.000Z' } })).toEqual([]);
    expect(await find({ sourceIds: ['br-other-1'] })).toEqual([]);

    const again = await command(there, (scope) => resumeAdmission(scope, id, elsewhere));
    expect(again?.awaited.map((one) => one.id).toSorted()).toEqual(first.awaited.map((one) => one.id).toSorted());
    const [given, ...others] = again?.awaited ?? [];
    const record = (operationId: OperationId, outcome: Parameters<typeof recordDelivery>[2]) =>
      command(there, ({ tx }) => recordDelivery(tx, operationId, outcome));
    for (const { operationId } of others) await record(operationId, { receipt });
    expect(await find()).toEqual([id]);
    // What cannot be given was said: the same command then begins another copy.
    await record(given?.operationId ?? expect.fail(), { failure: 'not in the store' });
    expect(await find()).toEqual([]);
    await drain(there.core, new FakeDriver());
  });

  it('is waited for as long as the process that brings it lives', async () => {
    const { core } = here;
    const admission = await admit(here, false, await onlyOrganization());
    const { operationId } = admission.awaited[0] ?? expect.fail();
    const log = createLogger({ level: 'silent', process: 'test' });
    const runner = new OperationRunner({
      core,
      driver: new FakeDriver(),
      providers: testProviders(),
      log,
      concurrency: 1,
    });
    await core.database.transaction(async (tx) => {
      expect(await takeDeliveryLock(tx, made.project.id)).toBe(true);
      while (await runner.runNext());
      expect(await selectOperationStatus(core.database.sql, operationId)).toMatchObject({ status: 'running' });
      await tx`select pg_advisory_unlock_all()`;
    });
    await drain(core, new FakeDriver());
    expect(await selectOperationStatus(core.database.sql, operationId)).toMatchObject({ status: 'error' });
  });
});
