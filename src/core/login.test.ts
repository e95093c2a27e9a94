import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { eventually, stays } from '../../test/helpers/eventually.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { asEndpointId, type EndpointId } from '../lib/ids.ts';
import { createLogger } from '../lib/log.ts';
import { createBranch } from './branch-create.ts';
import { suspendEndpoint } from './endpoint.ts';
import { findByPassword, findLogin, type LoginParts, openSessionSoon } from './login.ts';
import { type RoleAddress, resetRolePassword } from './role.ts';
import { Sleepers } from './wake.ts';

let made: TestCore;
let role: string;
let address: RoleAddress;
let id: EndpointId;
let parts: LoginParts;
let answer: string | null | undefined;
let reads: { role: string; adminSecret: string }[] = [];
let pretended: string[] = [];
let nap: () => Promise<void>;
let finishWork: () => Promise<void>;

beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());
beforeEach(async () => {
  const driver = new FakeDriver();
  const { project, endpoint, branch } = await makeProject(made);
  finishWork = () => drain(made.core, driver);
  await finishWork();
  id = endpoint.id;
  nap = async () => {
    await command(made, (scope) => suspendEndpoint(scope, made.caller, project.id, id));
    await finishWork();
  };
  const [owner] = await made.core.database.sql`select name, verifier from roles where branch_id = ${branch.id}`;
  role = owner?.name;
  address = { projectId: project.id, branchId: branch.id, name: role };
  answer = undefined;
  reads = [];
  pretended = [];
  const verifiers = {
    read: async (_address: unknown, adminSecret: string, asked: string) => {
      reads.push({ role: asked, adminSecret });
      return answer;
    },
    pretend: async (endpointId: string) => void pretended.push(endpointId),
  };
  parts = {
    core: made.core,
    log: createLogger({ level: 'silent', process: 'test' }),
    verifiers,
    sleepers: new Sleepers(),
  };
});

const stored = async () => {
  const [row] = await made.core.database.sql`
    select verifier, password is not null as has_password, revision from roles r
    where name = ${role} and branch_id = (select branch_id from endpoints where id = ${id})`;
  return row;
};

describe('while a compute sleeps', () => {
  test('what is stored counts, and the endpoint is remembered as what the client may wake', async () => {
    await nap();
    const { verifier } = (await stored()) ?? {};
    expect(await findLogin(parts, id, role)).toEqual({
      verifier,
      resetAt: null,
      disabled: false,
      allowedIps: [],
      publicBlocked: false,
      poolerEnabled: true,
      endpointId: id,
    });
    expect(reads).toEqual([]);
    expect(parts.sleepers.take(id)).toMatchObject({ id, type: 'read_write' });
  });

  test('what the project and the endpoint refuse is known', async () => {
    const { sql } = made.core.database;
    await sql`
      update projects set settings = settings || '{"block_public_connections": true}'
      where id = (select project_id from endpoints where id = ${id})`;
    await sql`update endpoints set pooler_enabled = false where id = ${id}`;
    expect(await findLogin(parts, id, role)).toMatchObject({ publicBlocked: true, poolerEnabled: false });
  });

  test('a role that does not exist has no verifier', async () => {
    await nap();
    expect(await findLogin(parts, id, 'nobody')).toMatchObject({ verifier: null });
  });
});

describe('while a compute is awake', () => {
  test('its server is asked with its own password, and is no sleeper any more', async () => {
    const { verifier } = (await stored()) ?? {};
    parts.sleepers.note({ id } as Parameters<Sleepers['note']>[0]);
    answer = verifier;
    expect(await findLogin(parts, id, role)).toMatchObject({ verifier });
    expect(reads).toEqual([{ role, adminSecret: expect.stringMatching(/^\S{16,}$/) }]);
    expect(parts.sleepers.take(id)).toBeUndefined();
  });

  test('a password that was changed by SQL counts, and is stored', async () => {
    const before = await stored();
    answer = 'SCRAM-SHA-256$4096:by-sql';
    expect(await findLogin(parts, id, role)).toMatchObject({ verifier: answer });
    await eventually(async () =>
      expect(await stored()).toMatchObject({ verifier: answer, hasPassword: false, revision: before?.revision + 1 }),
    );
  });

  test('a role that may not log in there is refused, which is not stored', async () => {
    const before = await stored();
    answer = null;
    expect(await findLogin(parts, id, role)).toMatchObject({ verifier: null });
    expect(await stored()).toEqual(before);
  });

  test('what is stored counts when the server does not answer', async () => {
    const { verifier } = (await stored()) ?? {};
    expect(await findLogin(parts, id, role)).toMatchObject({ verifier });
    expect(reads).toHaveLength(1);
  });

  test('what is stored counts while a change over the API is on its way to the server', async () => {
    await made.core.database.sql`update roles set pending = true where name = ${role}`;
    const { verifier } = (await stored()) ?? {};
    answer = 'SCRAM-SHA-256$4096:older';
    expect(await findLogin(parts, id, role)).toMatchObject({ verifier });
    expect(reads).toEqual([]);
  });
});

describe('a password without the name of a compute', () => {
  test('finds the one that has it, by its role, and not after a reset or a change by SQL', async () => {
    const reset = (address: RoleAddress) => command(made, (scope) => resetRolePassword(scope, made.caller, address));
    const first = await reset(address);
    expect(await findByPassword(parts, role, first.password ?? '')).toEqual([id]);
    expect(await findByPassword(parts, 'other', first.password ?? '')).toEqual([]);
    const second = await reset(address);
    expect(await findByPassword(parts, role, first.password ?? '')).toEqual([]);
    expect(await findByPassword(parts, role, second.password ?? '')).toEqual([id]);
    await finishWork();
    answer = 'SCRAM-SHA-256$4096:by-sql';
    await findLogin(parts, id, role);
    await eventually(async () => expect(await findByPassword(parts, role, second.password ?? '')).toEqual([]));
  });

  test('finds two where a branch has the passwords of its parent', async () => {
    const { password } = await command(made, (scope) => resetRolePassword(scope, made.caller, address));
    const child = { annotation: {}, endpoints: [{ type: 'read_write' as const }] };
    await command(made, (scope) => createBranch(scope, made.caller, address.projectId, child));
    await finishWork();
    expect(await findByPassword(parts, role, password ?? '')).toHaveLength(2);
  });
});

test('an endpoint that does not exist takes the time of one that does', async () => {
  expect(await findLogin(parts, asEndpointId('ep-not-there-12345678'), role)).toBeNull();
  expect(pretended).toEqual(['ep-not-there-12345678']);
  expect(reads).toEqual([]);
});

test('after a wake a session is opened for the logins to come, unless the compute sleeps again', async () => {
  openSessionSoon(parts, id);
  expect(reads).toEqual([]);
  await eventually(() => expect(reads.map((read) => read.role)).toEqual(['']));
  await nap();
  openSessionSoon(parts, id);
  openSessionSoon(parts, asEndpointId('ep-not-there-12345678'));
  await stays(() => expect(reads).toHaveLength(1), 200);
});
