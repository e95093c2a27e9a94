/** The storage of the double. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Volumes } from '../helpers/kubernetes-double/volumes.ts';

test('a server that is about to end, with no process left but itself, can be copied and goes on', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'catnap-volumes-'));
  const volumes = new Volumes(folder, () => Promise.reject(new Error('not asked for')), null);
  await volumes.prepare();
  const data = join(folder, 'volumes', 'v', 'pgdata');
  await mkdir(data, { recursive: true });
  // Found as a postmaster is: by its pid file and the folder that it names.
  const server = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', '--', '-D', data]);
  const ended = once(server, 'exit');
  try {
    await writeFile(join(data, 'postmaster.pid'), `${server.pid}\n`);
    await expect.poll(() => volumes.find('v')).toBe(server.pid);
    await volumes.snapshot('v', 's');
    expect(existsSync(join(folder, 'snapshots', 's', 'pgdata', 'postmaster.pid'))).toBe(true);
    expect(await readFile(`/proc/${server.pid}/stat`, 'utf8')).not.toContain(') T ');
  } finally {
    server.kill('SIGKILL');
    await ended;
    await rm(folder, { recursive: true, force: true });
  }
});
