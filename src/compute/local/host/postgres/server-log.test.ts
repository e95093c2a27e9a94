import { appendFile, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../../../../../test/helpers/eventually.ts';
import { asEndpointId, asProjectId } from '../../../../lib/ids.ts';
import { cutLog, LogKeeper, logName, readLog } from './server-log.ts';

const mebibyte = 1024 ** 2;
let directory: string;
let log: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'cn-log-'));
  log = join(directory, logName);
});
afterEach(() => rm(directory, { recursive: true }));

const lines = (bytes: number) => `${'x'.repeat(1023)}\n`.repeat(bytes / 1024);
const sizeOf = async (path: string) => (await stat(path)).size;

describe('a log', () => {
  test('is left alone up to 4 MiB, and cut beyond, down to its last lines', async () => {
    await writeFile(log, lines(4 * mebibyte));
    expect(await cutLog(directory)).toBe(false);
    await appendFile(log, 'the last line\n');
    expect(await cutLog(directory)).toBe(true);
    expect(await readFile(log, 'utf8')).toMatch(
      /^\S+ \S+ UTC \[\d+\] catnap LOG: {2}the log had grown by 4194318 bytes/,
    );
    const aside = await readFile(`${log}.1`, 'utf8');
    expect(aside.length).toBeLessThanOrEqual(256 * 1024);
    expect(aside).toMatch(/^x{1023}\n[x\n]+\nthe last line\n$/);
    expect(await readLog(directory)).toMatch(/the last line\n.* catnap LOG: /);
  });

  test('is read in whole lines from its end; one that does not exist is empty', async () => {
    expect(await readLog(directory)).toBe('');
    await writeFile(log, `${lines(mebibyte)}end\n`);
    const text = await readLog(directory);
    expect(text.length).toBeLessThanOrEqual(256 * 1024);
    expect(text).toMatch(/^x{1023}\n[\s\S]*\nend\n$/);
  });

  test('stays small while something writes to it all the time', async () => {
    const failures: unknown[] = [];
    const keeper = new LogKeeper({ home: '/', endpoint: () => directory }, (error) => failures.push(error));
    keeper.add({ projectId: asProjectId('p'), endpointId: asEndpointId('e') });
    let written = 0;
    await eventually(async () => {
      await appendFile(log, lines(2 * mebibyte));
      written += 2;
      expect(written).toBeGreaterThan(30);
      expect(await sizeOf(log)).toBeLessThan(4 * mebibyte);
    });
    await keeper.close();
    expect(await sizeOf(`${log}.1`)).toBeLessThanOrEqual(256 * 1024);
    expect(failures).toEqual([]);
  });
});
