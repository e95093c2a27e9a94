/** A worker that stops in the middle of an operation ends its step, and another one goes on with the next at once. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { eventually } from '../../test/helpers/eventually.ts';
import { testProviders } from '../../test/helpers/providers.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { enqueue } from '../core/operation.ts';
import { lockProject } from '../db/projects.ts';
import { createLogger } from '../lib/log.ts';
import { OperationRunner } from './runner.ts';
import { done, goto, type Job, nothingToUndo } from './step.ts';

let made: TestCore;
const driver = new FakeDriver();
const log = createLogger({ level: 'silent', process: 'test' });
beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());

test('what has more steps is handed back', async () => {
  const { project } = await makeProject(made);
  await drain(made.core, driver);
  const ran: string[] = [];
  let letGo = () => {};
  const gate = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const job = (worker: string): Job => ({
    giveUp: nothingToUndo,
    steps: {
      record: async () => {
        ran.push(`${worker}: first step`);
        await gate;
        return goto('second', null);
      },
      second: async () => {
        ran.push(`${worker}: second step`);
        return done(null);
      },
    },
  });
  const runnerOf = (worker: string) =>
    new OperationRunner({
      core: made.core,
      driver,
      log,
      concurrency: 1,
      providers: testProviders(),
      // Neither patience nor a poll may do what handing back should.
      leaseMs: 3_600_000,
      pollMs: 3_600_000,
      registry: { check_availability: job(worker) },
    });
  const first = runnerOf('one');
  await first.start();
  await command(made, async (scope) => {
    await lockProject(scope.tx, project.id);
    await enqueue(scope, 'check_availability', { projectId: project.id, exclusive: ['a'] });
  });
  await eventually(() => expect(ran).toEqual(['one: first step']));
  const second = runnerOf('two');
  await second.start();
  const stopped = first.stop();
  letGo();
  await stopped;
  // The outcome of the first step had nothing to write, so the step is repeated, as every step can be.
  await eventually(() => expect(ran).toEqual(['one: first step', 'two: first step', 'two: second step']));
  await eventually(async () => {
    const rows = await made.core.database.sql`select status from operations where job = 'check_availability'`;
    expect([...rows]).toEqual([{ status: 'finished' }]);
  });
  await second.stop();
});
