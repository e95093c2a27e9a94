import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ballastBytes, ballastFile, lowMark, RoomWatch, type Space } from './room.ts';

const mib = 1024 ** 2;
const gib = 1024 ** 3;

let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'cn-room-'));
});
afterAll(() => rm(home, { recursive: true }));

describe('what is kept back', () => {
  test.each([
    ['of a small disk a seventh', 200 * mib, 30 * mib],
    ['of one of 1 GiB 128 MiB', gib, 128 * mib],
    ['of a larger one a twentieth', 10 * gib, 512 * mib],
    ['and never more than 1 GiB', 1000 * gib, gib],
  ])('%s', (_, total, low) => expect(lowMark(total)).toBeCloseTo(low));
});

describe('the level', () => {
  const total = 10 * gib;
  const low = lowMark(total);

  /** A home whose ballast is in its place takes nothing from what is free. */
  async function watchWith(spaces: Record<string, Space>, layout: { home: string; root: string }) {
    await writeFile(ballastFile(layout), Buffer.alloc(ballastBytes(total), 1));
    return new RoomWatch(layout, async (folder) => spaces[folder] ?? { total, free: 0 });
  }

  test('falls at its marks, and rises again only a quarter above the first', async () => {
    const space = { total, free: low };
    const watch = await watchWith({ [home]: space }, { home, root: home });
    const levelAt = async (free: number) => {
      space.free = free;
      return (await watch.observe()).level;
    };
    expect(await levelAt(low)).toBe('enough');
    expect(await levelAt(low - 1)).toBe('low');
    expect(await levelAt(low / 2 - 1)).toBe('critical');
    expect(await levelAt(low * 1.2)).toBe('low');
    expect(await levelAt(low * 1.25)).toBe('enough');
    expect(await levelAt(low * 1.2)).toBe('enough');
  });

  test('does not count what a missing ballast has given up', async () => {
    const watch = await watchWith({ [home]: { total, free: low } }, { home, root: home });
    expect((await watch.observe()).level).toBe('enough');
    await writeFile(ballastFile({ home }), '');
    const { level, freeBytes } = await watch.observe();
    expect({ level, freeBytes }).toEqual({ level: 'low', freeBytes: low - ballastBytes(total) });
  });

  test('is that of the fuller disk, where the data has one of its own', async () => {
    const root = '/elsewhere';
    const plenty = { total, free: total };
    const full = { total: gib, free: mib };
    expect(await (await watchWith({ [home]: plenty, [root]: full }, { home, root })).observe()).toEqual({
      level: 'critical',
      freeBytes: mib,
      lowBytes: lowMark(gib),
    });
    expect((await (await watchWith({ [home]: full, [root]: plenty }, { home, root })).observe()).level).toBe(
      'critical',
    );
  });
});
