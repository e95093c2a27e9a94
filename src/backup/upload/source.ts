/** Streams of files on this machine, whose failures are told apart from those of the store. */
import { Readable } from 'node:stream';

/** A file on this machine could not be read; most often it was pruned while it was being uploaded. */
export class SourceGoneError extends Error {
  constructor(cause: unknown) {
    super(`a file of the history could not be read: ${cause instanceof Error ? cause.message : cause}`, { cause });
    this.name = 'SourceGoneError';
  }
}

/** The same bytes; `signal` ends them with a failure. */
export function fromMachine(stream: Readable, signal: AbortSignal): Readable {
  return Readable.from(guarded(stream, signal), { objectMode: false });
}

async function* guarded(stream: Readable, signal: AbortSignal): AsyncIterable<Buffer> {
  try {
    for await (const chunk of stream) {
      signal.throwIfAborted();
      yield chunk;
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : new SourceGoneError(error);
  }
}
