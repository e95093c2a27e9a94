/** What one run of a command works with: the options that all commands share, turned into a client and a writer. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ApiClient, createClient } from './client.ts';
import { CliFailure } from './failure.ts';
import { type Link, readLink } from './link.ts';
import type { CliParts } from './parts.ts';
import { createWriter, type OutputFormat, type Writer } from './writer.ts';

export interface SharedOptions {
  readonly json?: boolean;
  readonly output: OutputFormat;
  readonly apiUrl?: string;
  readonly apiKey?: string;
}

export interface Session {
  readonly parts: CliParts;
  readonly writer: Writer;
  readonly format: OutputFormat;
  readonly client: ApiClient;
  /** What the current folder is linked to. */
  readonly link: Link | null;
  /** Words behind `--`. commander lists them among the arguments of a command, and does not say where they begin. */
  readonly behindDashes: readonly string[];
}

/** Runs a command's work and keeps the exit code that it returns, 0 if it returns none. */
export type RunCommand = (work: (session: Session) => Promise<number | undefined>) => Promise<void>;

export function openSession(parts: CliParts, options: SharedOptions, args: readonly string[]): Session {
  const format = options.json ? 'json' : options.output;
  return {
    parts,
    format,
    // When it is asked for: a command that needs no project must not fail over a bad file.
    get link() {
      return readLink(parts.folder);
    },
    behindDashes: args.includes('--') ? args.slice(args.indexOf('--') + 1) : [],
    writer: createWriter(parts.stdout, format, parts.asCalledHere),
    client: createClient({
      url: options.apiUrl ?? parts.url,
      apiKey: async () => options.apiKey ?? parts.apiKey ?? readKeyFile(parts.home),
    }),
  };
}

export const keyFile = (home: string) => join(home, 'api-key');

/** The file that the first start writes in the data home. */
export async function readKeyFile(home: string): Promise<string> {
  const path = keyFile(home);
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT') {
      throw new CliFailure(`there is no key in ${path}: start Catnap once with \`catnap up\`, or pass --api-key`);
    }
    throw new CliFailure(`${path} cannot be read (${code}): run this as the user who starts Catnap, or pass --api-key`);
  }
}
