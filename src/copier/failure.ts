/** A copy that cannot begin or go on, with a sentence for people. Never holds a password. */
import postgres from 'postgres';

export class CopyFailure extends Error {
  override name = 'CopyFailure';
}

/** A URL that is none, or that asks for what there is not. */
export class WrongUrl extends CopyFailure {
  override name = 'WrongUrl';
  readonly isUsage = true;
}

/** For `whenCaughtUp`: the copy stops there, and a later call goes on with it. */
export class CopyPaused extends CopyFailure {
  override name = 'CopyPaused';
}

/** What Postgres said, with the hint that it gave. */
export function wordsOf(error: unknown): string {
  if (error instanceof postgres.PostgresError) {
    const more = [error.detail, error.hint].filter((line) => line !== undefined && line !== '');
    return [`${error.message} (SQLSTATE ${error.code})`, ...more].join('; ');
  }
  if (!(error instanceof Error)) return String(error);
  // A host with several addresses, none of which answers, has a code and no message.
  return error.message === '' && 'code' in error ? String(error.code) : error.message;
}

export const isDenied = (error: unknown) => error instanceof postgres.PostgresError && error.code === '42501';

/** A setting that this major has no more, or a value that it does not take. */
export const isUnknown = (error: unknown) =>
  error instanceof postgres.PostgresError && ['42704', '22023'].includes(error.code);

/** A sequence of a column has the owner of its table, and needs no statement of its own. */
export const isLinked = (error: unknown) => error instanceof postgres.PostgresError && error.code === '0A000';
