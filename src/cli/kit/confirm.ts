/** Asks a person yes or no. Where nobody can answer, that is an error which names the way without a question. */
import { createInterface } from 'node:readline/promises';
import { CliFailure } from './failure.ts';
import type { CliParts } from './parts.ts';

export async function confirm({ stdin, stderr }: CliParts, question: string): Promise<boolean> {
  if (!stdin.isTTY) throw new CliFailure('nobody is here to be asked: add --yes');
  const lines = createInterface({ input: stdin, output: stderr });
  try {
    return /^y(es)?$/i.test((await lines.question(`${question} [y/N] `)).trim());
  } finally {
    lines.close();
  }
}
