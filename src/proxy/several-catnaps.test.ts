/** Proxies of two Catnaps in front of the same compute, which share nothing but the system database. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../test/helpers/eventually.ts';
import { isOnBun, PostgresProxies } from '../../test/helpers/proxy.ts';
import type { CancelKey } from './kit/control-plane.ts';
import { defaultLimits, divideLimits } from './kit/limits.ts';

const proxies = new PostgresProxies();
beforeAll(() => proxies.prepare());
afterAll(() => proxies.dispose());

// On Bun the proxies are in processes of their own, which cannot share a list of listeners.
it.skipIf(isOnBun)('a cancel request ends its query, whichever of them it reaches', async () => {
  const listeners: ((key: CancelKey) => void)[] = [];
  const announced: CancelKey[] = [];
  const plane = {
    onCancel: (listener: (key: CancelKey) => void) => listeners.push(listener),
    passCancelOn: async (key: CancelKey) => {
      announced.push(key);
      for (const listener of listeners) listener(key);
    },
  };
  const [here, there] = [await proxies.start(plane, { replicas: 2 }), await proxies.start(plane, { replicas: 2 })];
  for (const options of ['endpoint=ep-a', 'endpoint=ep-a-pooler']) {
    const client = await proxies.client(here, { options, application_name: 'cancelled elsewhere' });
    const cancelled = client.query('select pg_sleep(600)').catch((error) => error.code);
    await eventually(async () => {
      const [row] = await proxies.direct`
        select count(*)::int from pg_stat_activity
        where wait_event = 'PgSleep' and application_name = 'cancelled elsewhere'`;
      expect(row?.count).toBe(1);
    });
    const { processID: processId, secretKey: secret } = client as unknown as { processID: number; secretKey: number };
    await proxies.cancel(there, { processId, secret });
    expect(await cancelled).toBe('57014');
  }
  expect(announced).toHaveLength(2);
  await proxies.cleanUp();
});

it('what pools and failed logins may come to is divided, and what one server takes of direct sessions is not', () => {
  const { poolShare, pooledPerEndpoint, failuresPerMinute, connectionsPerEndpoint } = divideLimits(defaultLimits, 2, 3);
  expect([poolShare, pooledPerEndpoint, failuresPerMinute]).toEqual([0.9 / 3, 3_334, 20]);
  expect(connectionsPerEndpoint).toBe(defaultLimits.connectionsPerEndpoint);
});
