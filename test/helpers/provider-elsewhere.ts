/** An API whose auth provider is the stand-in elsewhere, and integrations whose users are followed there. */
import { randomUUID } from 'node:crypto';
import { Webhook } from 'svix';
import { FakeDriver } from '../../src/compute/fake/fake-driver.ts';
import { createOperationFollower } from '../../src/core/operation-wait.ts';
import { createLogger } from '../../src/lib/log.ts';
import { UsersSyncElsewhere } from '../../src/reconcilers/users-sync-elsewhere.ts';
import { makeApi } from './contract.ts';
import { drain } from './drain.ts';
import { testProviders } from './providers.ts';
import { type StandInProject, startStandIn } from './stand-in-provider.ts';

export interface Followed {
  readonly projectId: string;
  readonly branchId: string;
  readonly project: StandInProject;
  readonly webhook: { readonly url: string; readonly secret: string };
}

interface Change {
  readonly kind: string;
  readonly userId: string;
  readonly name: string | null;
}

export type ProviderElsewhere = Awaited<ReturnType<typeof makeProviderElsewhere>>;

export async function makeProviderElsewhere() {
  const standIn = await startStandIn();
  const providers = testProviders(standIn);
  const driver = new FakeDriver();
  /** What was logged. */
  const lines: string[] = [];
  const log = createLogger({ level: 'warn', process: 'test', destination: { write: (line) => lines.push(line) } });
  const api = await makeApi({}, undefined, (core) => ({
    providers,
    // The worker's part, done while the request waits.
    awaitOperation: async (id) => {
      await drain(core, driver, undefined, providers);
      const waiter = await createOperationFollower(core, 1_000);
      return waiter.awaitOperation(id).finally(() => waiter.close());
    },
  }));
  const { sql } = api.core.database;

  async function integrate(projectId: string, branchId: string): Promise<Followed> {
    const body = { project_id: projectId, branch_id: branchId, auth_provider: 'stack' };
    const reply = (await api.call('POST', '/api/v2/projects/auth/create', { body })).json();
    const project = standIn.projects.get(reply.auth_provider_project_id);
    const webhook = project?.webhooks.at(-1);
    if (project === undefined || webhook === undefined) throw new Error('there is no project, or no webhook');
    return { projectId, branchId, project, webhook };
  }

  const follower = () => new UsersSyncElsewhere({ core: api.core, providers: testProviders(standIn), log });
  return {
    standIn,
    driver,
    lines,
    log,
    api,
    integrate,
    follower,
    turn: () => follower().turn(),
    makePollDue: () => sql`update auth_integrations set poll_at = now(), follow_until = null`,
    makeFollowed: async (): Promise<Followed> => {
      const body = { project: { name: 'app' } };
      const { project, branch } = (await api.call('POST', '/api/v2/projects', { body })).json();
      await drain(api.core, driver);
      return integrate(project.id, branch.id);
    },
    changes: (of: Followed): Promise<Change[]> => sql<Change[]>`
      select kind, user_id, user_json->>'display_name' as name from auth_user_changes
      where project_id = ${of.project.id} order by seq`,
    /** As the provider would send it, now unless said otherwise. */
    tell: async (
      to: { readonly url: string; readonly secret: string },
      type: string,
      data: unknown,
      at: Date = new Date(),
    ) => {
      const payload = JSON.stringify({ type, data });
      const id = `msg_${randomUUID()}`;
      const headers = {
        'content-type': 'application/json',
        'svix-id': id,
        'svix-timestamp': String(Math.floor(at.getTime() / 1000)),
        'svix-signature': new Webhook(to.secret).sign(id, at, payload),
      };
      return api.app.inject({ method: 'POST', url: new URL(to.url).pathname, headers, payload });
    },
    close: async () => {
      await api.close();
      await standIn.close();
    },
  };
}
