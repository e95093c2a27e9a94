/**
 * Hears what a socket receives on the shortest way. A Readable keeps account of each chunk, announces it and looks for
 * more, which for a small message is much of what it costs to pass it on. A chunk that arrives while nothing is
 * buffered and nobody has paused the stream is handed over before all that; every other one takes the ordinary way, so
 * pausing, backpressure and the end are those of the stream.
 */
import type { Duplex } from 'node:stream';

/** The function stops the listening; what comes then is for the next listener. */
export function onChunks(stream: Duplex, listener: (chunk: Buffer) => void): () => void {
  const { push } = stream;
  stream.on('data', listener);
  stream.push = (chunk, encoding) => {
    if (chunk === null || stream.readableFlowing !== true || stream.readableLength > 0) {
      return push.call(stream, chunk, encoding);
    }
    listener(chunk);
    return true;
  };
  return () => {
    stream.push = push;
    stream.off('data', listener);
  };
}
