/** Failures of a driver that its callers tell from others. */

export class StaleGenerationError extends Error {
  constructor(endpointId: string, given: number, seen: number) {
    super(`generation ${given} of ${endpointId} is stale; the driver has seen ${seen}`);
    this.name = 'StaleGenerationError';
  }
}

/** The history of a branch does not reach that moment, or has lost it. Final: asking again does not help. */
export class NoSuchMomentError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'NoSuchMomentError';
  }
}
