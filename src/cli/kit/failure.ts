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
