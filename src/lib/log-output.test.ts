import { closeSync, constants, openSync, readFileSync, readSync } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../test/helpers/eventually.ts';
import { createLogger } from './log.ts';
import { openLogOutput } from './log-output.ts';
import { runProgram } from './run-program.ts';

let folder: string;
let made = 0;
const opened: number[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'log-output-'));
});
afterAll(async () => {
  for (const descriptor of opened) closeSync(descriptor);
  await rm(folder, { recursive: true });
});

function open(path: string, flags: number | string): number {
  const descriptor = openSync(path, flags);
  opened.push(descriptor);
  return descriptor;
}

/** Takes 64 KB, and no more until they are read. */
async function openPipe(): Promise<number> {
  const path = join(folder, `pipe-${++made}`);
  await runProgram('mkfifo', [path]);
  return open(path, constants.O_RDWR | constants.O_NONBLOCK);
}

function readAll(descriptor: number): string {
  const buffer = Buffer.alloc(1024 * 1024);
  try {
    return buffer.subarray(0, readSync(descriptor, buffer)).toString();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return '';
    throw error;
  }
}

describe('a log output', () => {
  it('writes lines in their order', async () => {
    const path = join(folder, 'lines');
    const output = openLogOutput({ descriptor: open(path, 'a') });
    const lines = Array.from({ length: 1_000 }, (_, index) => `line ${index}\n`);
    for (const line of lines) output.write(line);
    await eventually(async () => expect(readFileSync(path, 'utf8')).toBe(lines.join('')));
  });

  it('keeps what a slow reader does not take yet, whole, and tells how many lines were too many', async () => {
    const pipe = await openPipe();
    const gaps: number[] = [];
    const line = (index: number) => `${String(index).padStart(98, ' ')}\n`;
    const output = openLogOutput({ descriptor: pipe, waitingMax: 100_000, onGap: (lines) => gaps.push(lines) });
    for (let index = 0; index < 10_000; index += 1) output.write(line(index));
    let text = '';
    await eventually(async () => {
      text += readAll(pipe);
      expect(gaps).toHaveLength(1);
    });
    text += readAll(pipe);
    const kept = text.split('\n').slice(0, -1).map(Number);
    expect(kept).toEqual(kept.map((_, index) => index));
    expect(kept.length + (gaps[0] ?? 0)).toBe(10_000);
  });

  it('ends nothing on a full disk, nor without a reader', async () => {
    const full = openLogOutput({ descriptor: open('/dev/full', 'w') });
    const path = join(folder, `pipe-${++made}`);
    await runProgram('mkfifo', [path]);
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const unread = openLogOutput({ descriptor: open(path, 'w') });
    closeSync(reader);
    const unhandled: Error[] = [];
    const note = (error: Error) => unhandled.push(error);
    process.on('uncaughtExceptionMonitor', note);
    // Each line is tried before the next: what follows it on the disk is answered after it.
    for (let index = 0; index < 20; index += 1) {
      full.write('line\n');
      unread.write('line\n');
      await stat(folder);
    }
    process.off('uncaughtExceptionMonitor', note);
    expect(unhandled).toEqual([]);
  });

  it('says in the log itself what is missing', async () => {
    const pipe = await openPipe();
    let gap: ((lines: number) => void) | undefined;
    const output = openLogOutput({ descriptor: pipe, waitingMax: 70_000, onGap: (lines) => gap?.(lines) });
    const log = createLogger({ level: 'info', process: 'test', destination: output });
    gap = (lines) => log.warn({ lines }, 'missing');
    for (let index = 0; index < 2_000; index += 1) log.info({ index }, 'x'.repeat(100));
    let text = '';
    await eventually(async () => {
      text += readAll(pipe);
      expect(text).toMatch(/"lines":\d+,"msg":"missing"/);
    });
  });
});
