/** Agents that repeat themselves: parallel creates under a few keys are as many projects as there are keys. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Program } from '../helpers/program.ts';

const keys = Number(process.env.CATNAP_TEST_KEYS ?? 8);
const creates = 10 * keys;

let program: Program;
beforeAll(async () => {
  program = await Program.create();
  await program.start();
});
afterAll(() => program.destroy());

it(`${creates} parallel creates with ${keys} distinct Idempotency-Keys make ${keys} projects and no error`, async () => {
  const replies = await Promise.all(
    Array.from({ length: creates }, (_, i) => {
      const name = `agent ${i % keys}`;
      return program.api('POST', '/projects', { project: { name } }, { 'idempotency-key': name });
    }),
  );
  expect(new Set(replies.map((reply) => reply.status))).toEqual(new Set([201]));
  expect(new Set(replies.map((reply) => reply.body.project.id)).size).toBe(keys);
  const { body } = await program.api('GET', '/projects?limit=100');
  expect(body.projects).toHaveLength(keys);
  for (const project of body.projects) await program.settle(project.id);
  expect(await program.serverPids('/projects/')).toHaveLength(keys);
});
