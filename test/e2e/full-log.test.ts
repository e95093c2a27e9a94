/** A log whose disk is full costs lines of the log, and nothing else. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

const entry = fileURLToPath(new URL('../../dist/bin.js', import.meta.url));
const requestsLogged = 50;
let program: Program;
let catnap: ChildProcess;

beforeAll(async () => {
  program = await Program.create();
  const full = openSync('/dev/full', 'w');
  // Every request is a line.
  const env = { ...program.environment, CATNAP_LOG_LEVEL: 'debug' };
  catnap = spawn(process.execPath, [entry, 'up'], { env, stdio: ['ignore', full, full] });
  closeSync(full);
  await eventually(() => program.api('GET', '/projects'));
});
afterAll(async () => {
  catnap.kill('SIGKILL');
  await program.destroy();
});

describe('a full disk under the log', () => {
  it('lets every process go on: requests, starts of computes, queries', async () => {
    const { status, body } = await program.api('POST', '/projects', { project: {} });
    expect(status).toBe(201);
    expect(await ask(body.connection_uris[0].connection_uri, 'select 1 + 1')).toBe('2');
    const processes = await childPids();
    expect(processes.length).toBeGreaterThanOrEqual(3);
    for (let request = 0; request < requestsLogged; request += 1) {
      expect((await program.api('GET', '/projects')).status).toBe(200);
    }
    expect(await childPids()).toEqual(processes);
    expect(catnap.exitCode).toBe(null);
  });

  it('does not keep Catnap from stopping in order', async () => {
    catnap.kill('SIGINT');
    if (catnap.exitCode === null) await once(catnap, 'exit');
    expect([catnap.exitCode, catnap.signalCode]).toEqual([0, null]);
  });
});

/** Of Catnap's own processes; one that ended would be there again, as another one. */
async function childPids(): Promise<string[]> {
  const pids = (await readFile(`/proc/${catnap.pid}/task/${catnap.pid}/children`, 'utf8')).trim().split(' ');
  const commandOf = (pid: string) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  const commands = await Promise.all(pids.map(commandOf));
  return pids.filter((_, index) => commands[index]?.includes('/child.js'));
}
