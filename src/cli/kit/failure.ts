/** A failure that the user can do something about: one line that says what, and the exit code. */

export class CliFailure extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.name = 'CliFailure';
    this.exitCode = exitCode;
  }
}

/** For a command line that cannot be parsed; most tools use this code. */
export const usageExitCode = 2;

/** For work on servers, whose failures are for people to read. A failure may say that it is one of the command line. */
export async function sentence<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    if (error instanceof CliFailure) throw error;
    const isUsage = error instanceof Error && 'isUsage' in error && error.isUsage === true;
    throw new CliFailure(error instanceof Error ? error.message : String(error), isUsage ? usageExitCode : 1);
  });
}
