import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../../test/helpers/eventually.ts';
import { createLayout, type Layout } from '../compute/local/host/home/layout.ts';
import { ballastBytes, ballastFile, ballastHeld, lowMark } from '../compute/local/host/home/room.ts';
import { createLogger } from '../lib/log.ts';
import { giveUpIfFull, keepBallast, takeBackIfRoom } from './ballast.ts';

const log = createLogger({ level: 'silent', process: 'test' });
const total = 1024 ** 3;
const size = ballastBytes(total);
const free = (bytes: number) => async () => ({ total, free: bytes });

let layout: Layout;
beforeEach(async () => {
  layout = createLayout(await mkdtemp(join(tmpdir(), 'cn-ballast-')));
});
afterEach(() => rm(layout.home, { recursive: true }));

describe('the ballast', () => {
  test('takes real room, is given up on a full disk and taken back where there is room', async () => {
    expect(ballastHeld(layout)).toBe(0);
    await takeBackIfRoom(layout, log, free(total));
    expect(ballastHeld(layout)).toBeGreaterThanOrEqual(size);
    expect(await giveUpIfFull(layout, log, free(size), 0)).toBe(false);
    expect(ballastHeld(layout)).toBeGreaterThanOrEqual(size);
    expect(await giveUpIfFull(layout, log, free(size - 1), 0)).toBe(true);
    expect(ballastHeld(layout)).toBe(size / 2);
    expect(await giveUpIfFull(layout, log, free(0), 999)).toBe(true);
    expect(ballastHeld(layout)).toBe(size / 2);
    expect(await giveUpIfFull(layout, log, free(0), 1_000)).toBe(true);
    expect(ballastHeld(layout)).toBe(0);
    await takeBackIfRoom(layout, log, free(lowMark(total) + size - 1));
    expect(ballastHeld(layout)).toBe(0);
    await takeBackIfRoom(layout, log, free(lowMark(total) + size));
    expect(ballastHeld(layout)).toBeGreaterThanOrEqual(size);
  });

  test('gives up the rest for who has taken the first half and failed', async () => {
    let left = total;
    const ballast = await keepBallast(layout, log, async () => ({ total, free: left }));
    await eventually(() => expect(ballastHeld(layout)).toBeGreaterThanOrEqual(size));
    left = size - 1;
    await eventually(() => expect(ballastHeld(layout)).toBe(size / 2));
    left = 0;
    await eventually(() => expect(ballastHeld(layout)).toBe(0));
    left = total;
    await eventually(() => expect(ballastHeld(layout)).toBeGreaterThanOrEqual(size));
    await ballast.stop();
  });

  test('is gone when a start on a full disk goes on, and does not come back', async () => {
    await writeFile(ballastFile(layout), Buffer.alloc(size, 1));
    const ballast = await keepBallast(layout, log, free(0));
    expect(ballastHeld(layout)).toBe(0);
    await ballast.stop();
    expect(ballastHeld(layout)).toBe(0);
  });
});
