/**
 * Receives the chunks of a socket with as little work as possible. A Readable accounts for each chunk, emits it and
 * reads on, which for a small message is much of the cost of passing it on. A chunk that arrives while nothing is
 * buffered and the stream is not paused goes to the listener before all that. Every other chunk takes the ordinary
 * way, so pausing, backpressure and the end work as they do in any stream.
 */
import { Duplex } from 'node:stream';
import type { ByteStream } from '../protocol/byte-stream.ts';
import { BunSocket } from './bun/socket.ts';

/** The returned function stops listening; later chunks are for the next listener. */
export function onChunks(stream: ByteStream, listener: (chunk: Buffer) => void): () => void {
  if (stream instanceof BunSocket) return stream.onChunks(listener);
  if (stream instanceof Duplex) return onChunksOfDuplex(stream, listener);
  stream.on('data', listener);
  return () => stream.off('data', listener);
}

function onChunksOfDuplex(stream: Duplex, listener: (chunk: Buffer) => void): () => void {
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
