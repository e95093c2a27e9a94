/** Calls of Catnap's processes fail for a while: those that make files durable, clone files, or start programs. */
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { letRun } from '../../../helpers/eventually.ts';
import type { Random } from '../../random.ts';
import type { World } from '../world.ts';
import { type Fault, killAll, killServers, pickSome } from './fault.ts';
import { pidsOf } from './of-catnap.ts';

const preload = fileURLToPath(new URL('../failing-calls.mjs', import.meta.url));

/** The environment in which Catnap's calls can be made to fail, by a file in this folder. */
export function callsEnvironment(folder: string): Readonly<Record<string, string>> {
  return { NODE_OPTIONS: `--import=${preload}`, CHAOS_CALLS: join(folder, 'calls') };
}

async function setFailing(folder: string, kinds: string): Promise<void> {
  // In one step: it is read all the time.
  await writeFile(join(folder, 'calls.next'), kinds, { mode: 0o644 });
  await rename(join(folder, 'calls.next'), join(folder, 'calls'));
}

/** `strike` is what happens meanwhile, and resolves with how much more it struck. */
const failing = (
  name: string,
  kind: 'sync' | 'clone' | 'spawn',
  strike: (world: World, random: Random) => Promise<number>,
): Fault => ({
  name,
  weight: 4,
  isPossible: ({ installation }) => installation.callsFolder !== null,
  strike: async (world, random) => {
    const folder = world.installation.callsFolder;
    if (folder === null) return 0;
    await setFailing(folder, kind);
    try {
      const more = await strike(world, random);
      await letRun(random.between(500, 4_000));
      return 1 + more;
    } finally {
      await setFailing(folder, '');
    }
  },
});

/** Branches and projects need files to be copied and made durable; random work alone asks for them too seldom. */
async function askForCopies(world: World): Promise<number> {
  for (const { projectId } of world.tenants) {
    await world.call('POST', `/projects/${projectId}/branches`, { branch: {}, endpoints: [{ type: 'read_write' }] });
  }
  await world.call('POST', '/projects', { project: { name: 'made while calls fail' } });
  return 0;
}

/** So that something has to be started. */
async function killSomething(world: World, random: Random): Promise<number> {
  if (random.chance(0.5)) return killServers(world, pickSome(world.processes().computes(), 2, random));
  const role = random.pick(['api', 'worker', 'proxy']);
  return killAll(pidsOf(world, role));
}

export const faultsOfCalls: readonly Fault[] = [
  failing('files cannot be made durable for a while', 'sync', askForCopies),
  failing('files cannot be cloned or copied for a while', 'clone', askForCopies),
  failing('programs cannot be started for a while', 'spawn', killSomething),
];
