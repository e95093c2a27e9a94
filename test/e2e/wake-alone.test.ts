/**
 * A wake asks nothing of the API, and does not stand in line behind its work: here the API's process is stopped as it
 * answers, with a queue full of copies before it. CATNAP_TEST_FLOOD is how many.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

const flood = Number(process.env.CATNAP_TEST_FLOOD ?? 12);
/** Far more than it takes on a machine that is busy copying, far less than the minute that a client waits. */
const wakeMsMax = 15_000;

let program: Program;
beforeAll(async () => {
  program = await Program.create();
  await program.start();
});
afterAll(() => program.destroy());

async function makeProject() {
  const { body } = await program.api('POST', '/projects', { project: {} });
  const id: string = body.project.id;
  await program.settle(id);
  const path = `/projects/${id}/endpoints/${body.endpoints[0].id}`;
  return { id, path, uri: body.connection_uris[0].connection_uri as string };
}

it('wakes a compute while the API stands still and the queue is full', { timeout: 120_000 }, async () => {
  const [sleeper, busy] = [await makeProject(), await makeProject()];
  await program.api('POST', `${sleeper.path}/suspend`);
  await program.settle(sleeper.id);
  const copies = await Promise.all(
    Array.from({ length: flood }, () => program.api('POST', `/projects/${busy.id}/branches`, { branch: {} })),
  );
  expect(copies.map(({ status }) => status)).toEqual(copies.map(() => 201));
  const [api = 0] = await program.rolePids('api');
  process.kill(api, 'SIGSTOP');
  try {
    const unanswered = fetch(`http://127.0.0.1:${program.httpPort}/`, { signal: AbortSignal.timeout(200) });
    await expect(unanswered).rejects.toThrow();
    const askedAt = performance.now();
    expect(await ask(sleeper.uri, 'select 41 + 1')).toBe('42');
    expect(performance.now() - askedAt).toBeLessThan(wakeMsMax);
  } finally {
    process.kill(api, 'SIGCONT');
  }
  await eventually(() => program.settle(busy.id), { deadlineMs: 60_000 });
  const { body } = await program.api('GET', `/projects/${sleeper.id}/operations`);
  const [start] = body.operations;
  expect(start).toMatchObject({ action: 'start_compute', status: 'finished', failures_count: 0 });
});
