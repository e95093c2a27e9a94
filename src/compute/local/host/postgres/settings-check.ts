/**
 * Asks Postgres whether a server could start with given settings, without starting one: `postgres -C` reads them all,
 * refuses what is unknown or out of range, and computes the memory that they would take.
 */
import { totalmem } from 'node:os';
import { errorText } from '../../../../lib/errors.ts';
import { runProgram } from '../../../../lib/run-program.ts';

const mib = 1024 ** 2;

export async function checkSettings(
  program: string,
  dataDirectory: string,
  settings: Readonly<Record<string, string>>,
): Promise<string | null> {
  const chosen = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  try {
    // `-C` must come first: only then does Postgres allow root to ask.
    const output = await runProgram(program, ['-C', 'shared_memory_size', '-D', dataDirectory, ...chosen]);
    const neededMib = Number(output.trim().split('\n').at(-1));
    const availableMib = Math.floor(totalmem() / mib);
    return neededMib <= availableMib
      ? null
      : `the settings take ${neededMib} MB of memory, the machine has ${availableMib}`;
  } catch (error) {
    return reason(errorText(error));
  }
}

/** The server's own message, without its timestamp and our wrapping. */
function reason(text: string): string {
  return /(?:FATAL|ERROR): +(.*?)(?: \| .*)?$/.exec(text)?.[1] ?? text;
}
