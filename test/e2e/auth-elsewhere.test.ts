/** An auth provider elsewhere over the whole program: its users in a real database, and its failures midway. */
import { randomUUID } from 'node:crypto';
import { Webhook } from 'svix';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AuthApp } from '../helpers/auth-app.ts';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { type StandIn, type StandInProject, startStandIn } from '../helpers/stand-in-provider.ts';

let standIn: StandIn;
let program: Program;
let app: AuthApp;

beforeAll(async () => {
  standIn = await startStandIn();
  program = await Program.create({
    CATNAP_STACK_URL: standIn.url,
    CATNAP_STACK_CLIENT_ID: standIn.clientId,
    CATNAP_STACK_CLIENT_SECRET: standIn.clientSecret,
  });
  await program.start();
});
afterAll(async () => {
  await program?.destroy();
  await standIn?.close();
});

const create = () =>
  program.api('POST', '/projects/auth/create', {
    auth_provider: 'stack',
    project_id: app.projectId,
    branch_id: app.branchId,
  });
const remove = () => program.api('DELETE', `${app.path}/auth/integration/stack`);
function project(): StandInProject {
  const [found, ...more] = standIn.projects.values();
  if (found === undefined || more.length > 0) throw new Error(`the provider has ${standIn.projects.size} projects`);
  return found;
}

/** As the provider sends it. */
async function tell(type: string, data: object): Promise<void> {
  const { url, secret } = project().webhooks.at(-1) ?? { url: '', secret: '' };
  const payload = JSON.stringify({ type, data });
  const [id, at] = [`msg_${randomUUID()}`, new Date()];
  const headers = {
    'content-type': 'application/json',
    'svix-id': id,
    'svix-timestamp': String(Math.floor(at.getTime() / 1000)),
    'svix-signature': new Webhook(secret).sign(id, at, payload),
  };
  expect((await fetch(url, { method: 'POST', headers, body: payload })).status).toBe(204);
}

describe('creation', () => {
  it('goes on after kill -9 between two answers of the provider, and makes nothing twice', async () => {
    app = await AuthApp.createWithout(program, 'app');
    standIn.trouble('POST /integrations/neon/api-keys', 'hang');
    const lost = create().catch((error: Error) => error);
    await eventually(() => expect(standIn.calls).toContain('POST /integrations/neon/api-keys'));
    await program.killHard();
    expect(await lost).toBeInstanceOf(Error);
    await program.start();
    const reply = await create();
    expect(reply.status).toBe(201);
    expect(project().keySets.filter((set) => set.revokedAt === null)).toMatchObject([
      { secretServerKey: reply.body.secret_server_key },
    ]);
  });

  it('that the provider refuses midway leaves nothing there and nothing here', async () => {
    const kept = project().id;
    const other = await AuthApp.createWithout(program, 'other');
    standIn.trouble('POST /integrations/neon/webhooks', { status: 400, body: { code: 'SCHEMA_ERROR', error: 'no' } });
    const order = { auth_provider: 'stack', project_id: other.projectId, branch_id: other.branchId };
    expect((await program.api('POST', '/projects/auth/create', order)).status).toBe(502);
    expect((await program.api('GET', `${other.path}/auth/integrations`)).body.data).toEqual([]);
    await eventually(() => expect([...standIn.projects.keys()]).toEqual([kept]));
  });
});

describe('its users', () => {
  it('are in the database after a webhook, changed and deleted too', async () => {
    const user = standIn.addUser(project(), 'hook@example.com');
    const seen = async (more: string) =>
      expect(await app.ask(`select count(*) from neon_auth.users_sync where email = 'hook@example.com' ${more}`)).toBe(
        '1',
      );
    for (const [type, change, more] of [
      ['user.created', () => {}, ''],
      ['user.updated', () => Object.assign(user, { display_name: 'Hook' }), `and name = 'Hook'`],
      ['user.deleted', () => project().users.delete(String(user.id)), 'and deleted_at is not null'],
    ] as const) {
      change();
      await tell(type, { id: user.id });
      await eventually(() => seen(more));
    }
  });

  it('that no webhook told of are found by reading all of them, before the first query of a compute that sleeps', async () => {
    expect((await remove()).status).toBe(200);
    standIn.addUser(project(), 'silent@example.com');
    await app.suspend();
    expect((await create()).status).toBe(201);
    const { users_synced_at: before } = await app.integration();
    await eventually(async () => {
      const { body } = await program.api('GET', `${app.path}/endpoints/${app.endpointId}`);
      expect(body.endpoint.current_state).toBe('idle');
      expect(standIn.calls.filter((call) => call === 'GET /users').length).toBeGreaterThan(1);
    });
    await eventually(async () => expect(await app.count('silent@example.com')).toBe('1'));
    expect((await app.integration()).users_synced_at).not.toBe(before ?? '');
  });

  it('cannot be read when the key was revoked, and the integration says so', async () => {
    project().isAdminKeyRevoked = true;
    await tell('user.created', { id: randomUUID() });
    await eventually(async () => expect((await app.integration()).users_provider_error).toMatch(/revoked/));
    project().isAdminKeyRevoked = false;
  });
});
