import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { makeTempHome, type TempHome } from '../../../test/helpers/temp-home.ts';
import { removeJournal, requireEmptyOrSame, requireNoRestore, writeJournal } from './journal.ts';

let place: TempHome;
beforeEach(async () => {
  place = await makeTempHome();
});
afterEach(() => place.remove());

const wanted = { from: 'file:///store', installationId: 'one', at: null };

test('an empty home is taken, a home with anything in it is not', async () => {
  await mkdir(join(place.path, 'lost+found'));
  expect(await requireEmptyOrSame(place.path, wanted)).toBeNull();
  expect(await requireEmptyOrSame(join(place.path, 'new'), wanted)).toBeNull();
  await writeFile(join(place.path, 'secret.key'), '');
  await expect(requireEmptyOrSame(place.path, wanted)).rejects.toThrow(/not empty \(it holds secret\.key\)/);
});

test('an unfinished restore keeps Catnap from starting, and is continued only as it was begun', async () => {
  await requireNoRestore(place.path);
  const journal = { ...wanted, startedAt: '2026-03-10T12:00:00.000Z' };
  await writeJournal(place.path, journal);
  await writeFile(join(place.path, 'secret.key'), '');
  await expect(requireNoRestore(place.path)).rejects.toThrow(/from file:\/\/\/store .* is not finished/);
  expect(await requireEmptyOrSame(place.path, wanted)).toEqual(journal);
  const earlier = { ...wanted, at: { kind: 'time', at: '2026-01-01T00:00:00.000Z' } as const };
  await expect(requireEmptyOrSame(place.path, earlier)).rejects.toThrow(/unfinished restore of file:\/\/\/store/);
  const other = { ...wanted, installationId: 'two' };
  await expect(requireEmptyOrSame(place.path, other)).rejects.toThrow(/continue that one, or empty the home/);
  await removeJournal(place.path);
  await requireNoRestore(place.path);
});
