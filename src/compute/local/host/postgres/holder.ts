/** Which endpoint a running server belongs to. */
import { findPostmaster, type Postmaster } from './postmaster.ts';
import { commandLineSetting } from './process-info.ts';

/** What a server was started as is read from its command line: the process itself is the record. */
export interface Holder extends Postmaster {
  readonly endpointId: string | null;
  readonly generation: number;
  readonly release: string | null;
  readonly isEnforced: boolean;
}

/** The server that runs on a data directory, no matter which Catnap started it. */
export async function findHolder(dataDirectory: string, uid: number | null): Promise<Holder | null> {
  const found = await findPostmaster(dataDirectory, uid);
  if (!found) return null;
  const endpointId = commandLineSetting(found.commandLine, 'catnap.endpoint');
  const generation = Number(commandLineSetting(found.commandLine, 'catnap.generation') ?? 0);
  const release = commandLineSetting(found.commandLine, 'catnap.release');
  const isEnforced = commandLineSetting(found.commandLine, 'catnap.limits') === 'enforced';
  return { ...found, endpointId, generation, release, isEnforced };
}
