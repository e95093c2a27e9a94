import { type ChildProcess, fork as forkFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createLogger } from '../../lib/log.ts';
import { type ChosenRuntime, onNode } from '../../machine/proxy-runtime.ts';
import type { ChildInit } from '../channel/messages.ts';
import { type ChildOptions, keepChildRunning } from './child-process.ts';

const onBun: ChosenRuntime = { name: 'bun', program: '/bun', why: 'a test' };
const ready = `process.send({ kind: 'ready', body: null });`;
/** What the processes do, by name. */
const scripts = {
  serves: `${ready} process.on('message', ({ kind }) => kind === 'stop' && process.exit(0));`,
  doesNotStop: `${ready} process.on('message', () => {});`,
  endsAtOnce: 'process.exit(3);',
  endsSoon: `${ready} setTimeout(() => process.exit(3), 10); process.on('message', () => {});`,
  cannotStart: `process.send({ kind: 'failed', body: 'the port is taken' }, () => process.exit(0));`,
};

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'catnap-children-'));
  for (const [name, text] of Object.entries(scripts)) await writeFile(join(folder, `${name}.mjs`), text);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Keeps a process running that does one thing on Bun and another one on Node. */
function keep(runtime: ChosenRuntime, does: Record<'bun' | 'node', keyof typeof scripts>, stopMs = 10_000) {
  const forks: string[] = [];
  const log = createLogger({ level: 'silent', process: 'parent' });
  const error = vi.spyOn(log, 'error');
  const fork = ({ name }: ChosenRuntime): ChildProcess => {
    forks.push(name);
    return forkFile(join(folder, `${does[name]}.mjs`), { execArgv: [] });
  };
  const init = { name: 'proxy', number: 0 } as ChildInit;
  const usual = { init, port: null, log, stopMs, onSpawn: () => {} };
  const options: ChildOptions = { ...usual, runtime, fork, forked: fork(runtime) };
  const fallbacks = () => error.mock.calls.filter(([, text]) => text?.includes('goes on on Node'));
  return { forks, fallbacks, error, kept: keepChildRunning(options) };
}

test('a process that ends on Bun before it is ready starts on Node, and the log says why once', async () => {
  const { kept, forks, fallbacks } = keep(onBun, { bun: 'endsAtOnce', node: 'serves' });
  const child = await kept;
  expect(forks).toEqual(['bun', 'node']);
  expect(fallbacks()).toEqual([
    [{ child: 'proxy', number: 0, reason: 'proxy: the process ended while starting' }, expect.any(String)],
  ]);
  await child.stop();
});

test('a process that keeps ending on Bun goes on on Node', async () => {
  const { kept, forks, fallbacks } = keep(onBun, { bun: 'endsSoon', node: 'serves' });
  const child = await kept;
  await vi.waitFor(() => expect(forks).toEqual(['bun', 'bun', 'bun', 'node']), 10_000);
  expect(fallbacks()).toHaveLength(1);
  await child.stop();
});

test('a process that cannot start on Node either reports why', async () => {
  const first = keep(onBun, { bun: 'cannotStart', node: 'cannotStart' });
  await expect(first.kept).rejects.toThrow('proxy: the port is taken');
  const second = keep(onNode('a test'), { bun: 'serves', node: 'cannotStart' });
  await expect(second.kept).rejects.toThrow('proxy: the port is taken');
  expect(second.forks).toEqual(['node']);
});

test('a restart is over when the next process is ready, and is no failure', async () => {
  const { kept, forks, error } = keep(onNode('a test'), { bun: 'serves', node: 'serves' });
  const child = await kept;
  await child.restart();
  await child.restart();
  expect(forks).toHaveLength(3);
  expect(error).not.toHaveBeenCalled();
  await child.stop();
  await child.restart();
  expect(forks).toHaveLength(3);
});

test('a process that does not stop in time is killed, and another one takes its place', async () => {
  const { kept, forks } = keep(onNode('a test'), { bun: 'serves', node: 'doesNotStop' }, 100);
  const child = await kept;
  await child.restart();
  expect(forks).toHaveLength(2);
  await child.stop();
});
