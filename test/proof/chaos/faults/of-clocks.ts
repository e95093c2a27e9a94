/** The clock of Catnap's processes is set forward or back while they run, and set right again later. */
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { letRun } from '../../../helpers/eventually.ts';
import type { Random } from '../../random.ts';
import type { World } from '../world.ts';
import type { Fault } from './fault.ts';

const preload = fileURLToPath(new URL('../jumping-clock.mjs', import.meta.url));

/** The environment in which Catnap's clock can be set, by a file in this folder. */
export function clockEnvironment(folder: string): Readonly<Record<string, string>> {
  return { NODE_OPTIONS: `--import=${preload}`, CHAOS_CLOCK: join(folder, 'clock') };
}

async function setClock(folder: string, offsetMs: number): Promise<void> {
  // In one step: it is read all the time.
  await writeFile(join(folder, 'clock.next'), String(offsetMs), { mode: 0o644 });
  await rename(join(folder, 'clock.next'), join(folder, 'clock'));
}

const jump = (name: string, offsetMs: (random: Random) => number): Fault => ({
  name,
  weight: 3,
  isPossible: ({ installation }) => installation.clockFolder !== null,
  strike: async ({ installation }: World, random) => {
    if (installation.clockFolder === null) return 0;
    await setClock(installation.clockFolder, offsetMs(random));
    await letRun(random.between(500, 4_000));
    await setClock(installation.clockFolder, 0);
    return 2;
  },
});

const minuteMs = 60_000;

export const faultsOfClocks: readonly Fault[] = [
  jump('clock set forward and right again', (random) => random.between(1, 3 * 60) * minuteMs),
  jump('clock set back and right again', (random) => -random.between(1, 3 * 60) * minuteMs),
];
