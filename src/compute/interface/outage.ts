/** When what a driver works with does not answer: that says nothing about the call, which may be made again. */

/** A failure that ends by itself, whoever asks: of another machine, or of a program that is being replaced. */
export interface Outage {
  readonly isOutage: boolean;
}

export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ('isOutage' in error && error.isOutage === true) || isOutage(error.cause);
}
