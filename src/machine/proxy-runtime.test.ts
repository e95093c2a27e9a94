import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkProxyRuntime } from './doctor/machine.ts';
import { chooseProxyRuntime } from './proxy-runtime.ts';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'catnap-runtime-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function program(name: string, script: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
  return path;
}

describe('the runtime of the proxies', () => {
  test('is Bun where it works, unless Node is asked for', async () => {
    const works = await program('works', 'echo 1.4.4');
    const broken = await program('broken', 'echo no script was run >&2; exit 1');
    const choose = (wanted: 'auto' | 'node', found: string[]) => chooseProxyRuntime(wanted, () => found);
    expect(await choose('auto', [works])).toMatchObject({ name: 'bun', program: works });
    expect(await choose('node', [works])).toMatchObject({ name: 'node', program: null });
    expect(await choose('auto', [broken])).toMatchObject({
      name: 'node',
      why: expect.stringContaining('no script was run'),
    });
    expect(await choose('auto', [])).toMatchObject({ name: 'node', why: 'the npm package bun is not installed' });
  });

  test('is the first Bun that works', async () => {
    const broken = await program('broken', 'echo no script was run >&2; exit 1');
    const works = await program('works', 'echo 1.4.4');
    expect(await chooseProxyRuntime('bun', () => [broken, works])).toEqual({
      name: 'bun',
      program: works,
      why: 'Bun 1.4.4 is installed and works',
    });
    await expect(chooseProxyRuntime('bun', () => [broken])).rejects.toThrow('no script was run');
  });

  test('is reported by the doctor, and Bun that is missing is a failure only where it was asked for', async () => {
    const without = (wanted: 'auto' | 'node' | 'bun') => chooseProxyRuntime(wanted, () => []);
    expect(await checkProxyRuntime('auto', without)).toMatchObject({
      status: 'ok',
      detail: expect.stringContaining('runs on Node'),
    });
    expect(await checkProxyRuntime('bun', without)).toMatchObject({
      status: 'fail',
      detail: expect.stringContaining('not installed'),
    });
  });
});
