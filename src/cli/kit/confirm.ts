/** Asks a person yes or no. Without a terminal it fails, with an error that names the option to skip the question. */
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
