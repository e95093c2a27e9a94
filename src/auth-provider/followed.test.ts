/** The embedded provider as an external one: another installation follows its webhooks, over real HTTP. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { listenAuthProvider, stackSecret, type TestAuthProvider } from '../../test/helpers/auth-provider.ts';
import { eventually } from '../../test/helpers/eventually.ts';
import { createProviders } from '../auth-client/providers.ts';
import { adminKeySealContext, webhookSecretSealContext } from '../core/auth-integration.ts';
import { createLogger } from '../lib/log.ts';
import { integrationClientId } from '../processes/auth-provider.ts';
import { UsersSyncElsewhere } from '../reconcilers/users-sync-elsewhere.ts';
import { startDeliveries } from './core/deliveries.ts';

const log = createLogger({ level: 'silent', process: 'test' });
let provider: TestAuthProvider & { readonly url: string };
beforeAll(async () => {
  provider = await listenAuthProvider();
});
afterAll(() => provider.close());

test('what happens to its users is known at once to whoever follows it from elsewhere', async () => {
  const { core } = provider;
  const { sql } = core.database;
  const external = { baseUrl: provider.url, clientId: integrationClientId, clientSecret: stackSecret };
  const providers = createProviders({ embedded: external, embeddedPublicUrl: provider.url, external });
  const client = providers.clientOf(provider.url);
  const { projectId, adminKey } = await client.provision('app', randomUUID());
  const project = client.project(projectId, adminKey);
  const early = await project.createUser({ email: 'early@example.com', name: 'Early' });

  const id = randomUUID();
  const secret = await project.addWebhook(`${core.config.publicUrl}/auth/webhooks/${id}`);
  await insertIntegration(id, { projectId, adminKey, secret });
  const changesOf = (userId: string) =>
    sql`select kind, user_json->>'display_name' as name from auth_user_changes where user_id = ${userId} order by seq`;

  const following = new UsersSyncElsewhere({ core, providers, log });
  const deliveries = await startDeliveries(provider.parts, log, null);
  await following.start();
  try {
    await eventually(async () => expect(await changesOf(early)).toEqual([{ kind: 'created', name: 'Early' }]));
    // From here on only webhooks can report changes.
    await eventually(async () => {
      const [polled] = await sql`select poll_at > now() + interval '4 min' as later from auth_integrations`;
      expect(polled?.later).toBe(true);
    });
    const ada = await project.createUser({ email: 'ada@example.com', name: 'Ada' });
    await eventually(async () => expect(await changesOf(ada)).toHaveLength(1));
    await project.deleteUser(ada);
    await eventually(async () =>
      expect(await changesOf(ada)).toEqual([
        { kind: 'created', name: 'Ada' },
        { kind: 'deleted', name: null },
      ]),
    );
  } finally {
    await following.stop();
    await deliveries.stop();
  }
});

async function insertIntegration(id: string, made: { projectId: string; adminKey: string; secret: string }) {
  const { core } = provider;
  const { sql } = core.database;
  await sql`
    insert into projects (id, organization_id, owner_id, name, region_id, pg_version, store_passwords,
      history_retention_seconds, settings, default_endpoint_settings, admin_secret)
    select 'some-project', m.organization_id, m.user_id, 'app', 'local', 17, true, 0, '{}', '{}', ''
    from organization_members m limit 1`;
  await sql`insert into auth_integrations ${sql({
    id,
    projectId: 'some-project',
    status: 'active',
    authProvider: 'stack',
    databaseName: 'neondb',
    roleName: 'neondb_owner',
    providerUrl: provider.url,
    providerProjectId: made.projectId,
    adminKey: core.box.seal(made.adminKey, adminKeySealContext(made.projectId)),
    webhookSecret: core.box.seal(made.secret, webhookSecretSealContext(id)),
  })}`;
}
