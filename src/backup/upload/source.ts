/** Streams of files on this machine, whose failures are told apart from those of the store. */
import { Readable } from 'node:stream';

/** A file of a history is not there any more: it was pruned while it was being uploaded. */
export class SourceGoneError extends Error {
  constructor(what: string, cause: unknown) {
    super(`the ${what} is gone`, { cause });
    this.name = 'SourceGoneError';
  }
}

/** A file of a history is there and cannot be read, which no later round mends by itself. */
export class SourceUnreadableError extends Error {
  constructor(what: string, cause: unknown) {
    super(`the ${what} cannot be read on this machine`, { cause });
    this.name = 'SourceUnreadableError';
  }
}

/**
 * `what` says what the file is for. The failure has no code of its own: stores take an error with a code of the system
 * for a failure of theirs.
 */
export function sourceError(what: string, error: unknown): SourceGoneError | SourceUnreadableError {
  const { code } = error as NodeJS.ErrnoException;
  const isGone = code === 'ENOENT' || code === 'ENOTDIR';
  return isGone ? new SourceGoneError(what, error) : new SourceUnreadableError(what, error);
}

/** The same bytes, opened when they are asked for: a failure before that would be nobody's. `signal` ends them. */
export function fromMachine(openStream: () => Readable, what: string, signal: AbortSignal): Readable {
  return Readable.from(guarded(openStream, what, signal), { objectMode: false });
}

async function* guarded(openStream: () => Readable, what: string, signal: AbortSignal): AsyncIterable<Buffer> {
  try {
    for await (const chunk of openStream()) {
      signal.throwIfAborted();
      yield chunk;
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : sourceError(what, error);
  }
}
