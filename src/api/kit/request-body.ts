/** The body of a request that is passed on: a small one in one piece, and of any other the beginning and a stream. */
import type { Readable } from 'node:stream';
import { CatnapError } from '../../lib/errors.ts';
import type { BodySink } from './proxy-lines.ts';

export interface RequestBody {
  /** The whole body, or its beginning. */
  readonly first: Buffer;
  /** The header that states where the body ends. */
  readonly framing: Readonly<Record<string, string>>;
  /** Only for a body of which `first` is the beginning. Returns the function that stops it. */
  readonly sendRest?: ((line: BodySink) => () => void) | undefined;
}

/** A body up to this length is gathered before the request is passed on. */
const gatheredBytesMax = 65_536;
const nothing = Buffer.alloc(0);
const chunkEnd = Buffer.from('\r\n');
const lastChunk = Buffer.from('0\r\n\r\n');

export async function openBody(source: Readable | null): Promise<RequestBody> {
  if (source === null) return whole(nothing);
  const { bytes, isWhole } = await gather(source);
  // Chunks of our own, also where the request states a length: what arrives decides, not what was announced.
  return isWhole
    ? whole(bytes)
    : {
        first: chunk(bytes),
        framing: { 'transfer-encoding': 'chunked' },
        sendRest: (line) => sendRest(source, line),
      };
}

function whole(bytes: Buffer): RequestBody {
  return { first: bytes, framing: { 'content-length': String(bytes.length) } };
}

function chunk(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, chunkEnd]);
}

/** The source is paused if it has more. */
function gather(source: Readable): Promise<{ bytes: Buffer; isWhole: boolean }> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const finish = (isWhole: boolean) => {
      source.off('data', onData);
      source.off('end', onEnd);
      source.off('close', onClose);
      const [only = nothing] = chunks;
      resolve({ bytes: chunks.length > 1 ? Buffer.concat(chunks, length) : only, isWhole });
    };
    const onData = (bytes: Buffer) => {
      chunks.push(bytes);
      length += bytes.length;
      if (length <= gatheredBytesMax) return;
      source.pause();
      finish(false);
    };
    const onEnd = () => finish(true);
    const onClose = () => reject(new CatnapError('invalid_request', 'the request ended before its body'));
    source.on('data', onData);
    source.once('end', onEnd);
    source.once('close', onClose);
  });
}

/** When it is stopped, the rest of the source is discarded, so that its connection can be used again. */
function sendRest(source: Readable, line: BodySink): () => void {
  const onData = (bytes: Buffer) => {
    if (bytes.length > 0 && !line.write(chunk(bytes))) source.pause();
  };
  const onEnd = () => {
    line.write(lastChunk);
    line.end();
  };
  line.onDrain(() => source.resume());
  source.on('data', onData);
  source.once('end', onEnd);
  source.resume();
  return () => {
    source.off('data', onData);
    source.off('end', onEnd);
    source.resume();
  };
}
