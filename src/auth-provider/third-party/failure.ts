/** How a visit to an OAuth provider fails. The message is for the log; it never holds a secret or a token. */
export type ThirdPartyProblem =
  /** It does not answer, answers nonsense, or refuses the project's credentials. */
  | 'unavailable'
  /** It does not accept the code, or what it asserts does not verify. */
  | 'rejected';

export class ThirdPartyFailure extends Error {
  readonly problem: ThirdPartyProblem;

  constructor(problem: ThirdPartyProblem, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ThirdPartyFailure';
    this.problem = problem;
  }
}
