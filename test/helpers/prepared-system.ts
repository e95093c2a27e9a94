/**
 * The system database of a home that has never been used, with its schema: made once for a run, by
 * `postgres-global.ts`, and copied into each home in which a test starts Catnap. To make it anew takes longer than
 * everything else that such a start does. `src/machine/system-database.test.ts` and homes with builds of their own
 * begin without.
 */
import { join } from 'node:path';
import { runProgram } from '../../src/lib/run-program.ts';

const keptIn = (sharedHome: string) => join(sharedHome, 'prepared-system');

/** The server on it must have stopped. */
export function keepSystem(sharedHome: string): Promise<void> {
  return copyFolder(join(sharedHome, 'system'), keptIn(sharedHome));
}

export function takeSystem(sharedHome: string, home: string): Promise<void> {
  return copyFolder(keptIn(sharedHome), join(home, 'system'));
}

/** With the owners: as root, the server and Catnap's processes each have their own uid. */
async function copyFolder(from: string, to: string): Promise<void> {
  await runProgram('cp', ['-a', from, to]);
}
