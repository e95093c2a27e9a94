/** Agents that repeat themselves: 200 parallel creates under 20 keys are 20 projects. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Program } from '../helpers/program.ts';

let program: Program;
beforeAll(async () => {
  program = await Program.create();
  await program.start();
});
afterAll(() => program.destroy());

it('200 parallel creates with 20 distinct Idempotency-Keys make 20 projects and no error', async () => {
  const replies = await Promise.all(
    Array.from({ length: 200 }, (_, i) => {
      const name = `agent ${i % 20}`;
      return program.api('POST', '/projects', { project: { name } }, { 'idempotency-key': name });
    }),
  );
  expect(new Set(replies.map((reply) => reply.status))).toEqual(new Set([201]));
  expect(new Set(replies.map((reply) => reply.body.project.id)).size).toBe(20);
  const { body } = await program.api('GET', '/projects?limit=100');
  expect(body.projects).toHaveLength(20);
  for (const project of body.projects) await program.settle(project.id);
  expect(await program.serverPids('/projects/')).toHaveLength(20);
});
