/** What `bin.ts` hands to the commands. The command line knows the API and nothing else of Catnap. */
import type { Writable } from 'node:stream';

export interface UpOptions {
  readonly roles: readonly string[];
  readonly stopComputes: boolean;
}

export interface Check {
  readonly name: string;
  readonly status: 'ok' | 'warn' | 'fail';
  readonly detail: string;
  readonly advice?: string;
}

export interface CliParts {
  readonly version: string;
  readonly home: string;
  /** Where the API of this configuration listens, without a path. */
  readonly url: string;
  /** The configured key; without it the file in the data home is read. */
  readonly apiKey: string | undefined;
  readonly roleNames: readonly string[];
  /** Starts Catnap and resolves with the exit code once it has stopped. */
  readonly up: (options: UpOptions) => Promise<number>;
  readonly doctor: () => Promise<readonly Check[]>;
  readonly stdout: Writable;
  readonly stderr: Writable;
}
