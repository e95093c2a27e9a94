/**
 * A Node that refuses `setuid`, as Debian's does always and others do with this variable: started as root, Catnap's
 * processes have no rights there either.
 */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

const names = ['api', 'worker', 'proxy'];
const uid = 700_000;
const four = Array.from({ length: 4 }, () => uid).join(' ');
const none = { uids: four, gids: four, groups: '', capabilities: '0000000000000000' };

/** What the kernel says about the rights of a process. */
async function rightsOf(pid: number) {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const words = (name: string) => new RegExp(`^${name}:(.*)$`, 'm').exec(status)?.[1]?.trim().replace(/\s+/g, ' ');
  return { uids: words('Uid'), gids: words('Gid'), groups: words('Groups'), capabilities: words('CapPrm') };
}

describe.skipIf(process.getuid?.() !== 0)('a Node that refuses to change the user of a process', () => {
  let program: Program;
  beforeAll(async () => {
    // As a login of root has them.
    const startedWith = process.getgroups?.() ?? [];
    process.setgroups?.([0, 4]);
    program = await Program.create({ UV_USE_IO_URING: '1' });
    await program.start().finally(() => process.setgroups?.(startedWith));
  });
  afterAll(() => program?.destroy());

  test('runs Catnap as root, and its processes have no rights', async () => {
    const { body } = await program.api('POST', '/projects', { project: { name: 'refused' } });
    expect(await ask(body.connection_uris[0].connection_uri, 'select 41 + 1')).toBe('42');
    expect(await rightsOf(program.pid)).toMatchObject({ uids: '0 0 0 0', groups: '0 4' });
    for (const name of names) {
      const [pid = 0] = await program.processPids(name);
      expect(await rightsOf(pid), name).toEqual(none);
    }
  });

  test('nor has a process that takes the place of another one', async () => {
    const [worker = 0] = await program.processPids('worker');
    process.kill(worker, 'SIGKILL');
    await eventually(async () => {
      const [pid = 0] = await program.processPids('worker');
      expect(pid).not.toBe(worker);
      expect(await rightsOf(pid)).toEqual(none);
    });
  });
});
