/** The tags of CommandComplete messages that show that a command has changed what a session holds. */

const code = (letter: string) => letter.charCodeAt(0);
const letterA = code('A');
const letterC = code('C');
const letterD = code('D');
const letterE = code('E');
const letterI = code('I');
const letterL = code('L');
const letterP = code('P');
const letterR = code('R');
const letterS = code('S');
const letterT = code('T');

/** A tag that is longer than this is not a session command. */
export const sessionTagBytesMax = 20;

/**
 * Whether the tag at `start` is SET, LISTEN, LOAD, PREPARE, DISCARD …, DEALLOCATE … or DECLARE …. This runs for every
 * command, so it compares the first letters in the chunk instead of decoding the tag.
 */
export function isSessionCommand(chunk: Buffer, start: number): boolean {
  const second = chunk[start + 1];
  const third = chunk[start + 2];
  switch (chunk[start]) {
    case letterS:
      return second === letterE && third === letterT;
    case letterD:
      return second === letterI || (second === letterE && (third === letterA || third === letterC));
    default:
      return chunk[start] === letterL || (chunk[start] === letterP && second === letterR);
  }
}

/** Whether the command has dropped every prepared statement of the session. */
export function dropsStatements(tag: string): boolean {
  return tag === 'DISCARD ALL' || tag === 'DEALLOCATE ALL';
}

/** What a session may have left on its server connection. `state` is more than settings, such as LISTEN. */
export type Leftovers = 'none' | 'settings' | 'state';

/** What is left after one more command. */
export function leftoversAfter(tag: string, before: Leftovers): Leftovers {
  if (tag === 'SET') return before === 'state' ? 'state' : 'settings';
  const leavesState = tag === 'LISTEN' || tag === 'LOAD' || tag === 'PREPARE' || tag.startsWith('DECLARE');
  return leavesState ? 'state' : before;
}
