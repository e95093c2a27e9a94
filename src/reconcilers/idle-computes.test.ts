import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { createLogger } from '../lib/log.ts';
import { idleComputes } from './idle-computes.ts';

let made: TestCore;
beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());

/** One turn over a compute that is due to sleep, whose server answers with an error; what the log has of it. */
async function turnOver(change: { pendingState: string | null; currentState: string }): Promise<string> {
  const { core } = made;
  const driver = new FakeDriver();
  const { endpoint } = await makeProject(made);
  await drain(core, driver);
  await core.database.sql`
    update endpoints set suspend_timeout_seconds = 1, last_active = now() - interval '1 hour',
      started_at = now() - interval '1 hour', pending_state = ${change.pendingState}
    where id = ${endpoint.id}`;
  driver.observeWork = async () => {
    // It changes while the server is asked.
    await core.database.sql`update endpoints set current_state = ${change.currentState} where id = ${endpoint.id}`;
    throw new Error('the database system is shutting down');
  };
  const lines: string[] = [];
  const log = createLogger({ level: 'info', process: 'test', destination: { write: (line) => lines.push(line) } });
  await idleComputes.turn({ core, driver, log });
  await core.database.sql`update endpoints set current_state = 'idle' where id = ${endpoint.id}`;
  return lines.join('');
}

test('a server that is stopped while it is asked what it does is no error', async () => {
  expect(await turnOver({ currentState: 'active', pendingState: 'idle' })).toBe('');
  expect(await turnOver({ currentState: 'idle', pendingState: null })).toBe('');
});

test('one that should run and fails is told of', async () => {
  expect(await turnOver({ currentState: 'active', pendingState: null })).toContain('a subject could not be handled');
});
