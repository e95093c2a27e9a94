/** What the banner notes about the machine: a line for each thing that works differently here, and where to read on. */
import type { HostFacts } from '../../compute/interface/driver-host.ts';
import { asCalledHere, type CommandName } from '../../lib/command-name.ts';
import { fullCopyNote } from '../../machine/storage/advice.ts';

export interface Noticed {
  readonly facts: Pick<HostFacts, 'limitsProblem' | 'networkProblem' | 'storageMethod'>;
  readonly isRoot: boolean;
  readonly isFirstStart: boolean;
  readonly command: CommandName;
}

export function notesOnMachine({ facts, isRoot, isFirstStart, command }: Noticed): string[] {
  const { limitsProblem, networkProblem, storageMethod } = facts;
  const why = isRoot ? `: ${limitsProblem}` : ' for an ordinary user';
  return [
    limitsProblem === null ? null : `sizes of computes are not enforced${why} (docs/operating.md#sizes)`,
    networkProblem === null
      ? null
      : 'SQL in computes reaches everything that this machine reaches (docs/operating.md#what-computes-reach)',
    isFirstStart ? fullCopyNote(storageMethod, isRoot) : null,
  ].flatMap((note) => (note === null ? [] : [asCalledHere(note, command)]));
}
