/** Edits a chunk of a client's requests on its way to the server, and builds the few messages that a pool adds. */
import { ProtocolError } from '../protocol/wire.ts';
import { headerBytes, requestTypes, statementTarget } from './message-types.ts';
import type { Statement } from './statements.ts';

/** Walks through a chunk. Unedited bytes stay together in pieces as long as possible, without a copy. */
export class ChunkEditor {
  readonly chunk: Buffer;
  /** Start of the current message. */
  at = 0;
  /** Start of the bytes that are not in `parts` yet. */
  #from = 0;
  readonly #parts: Buffer[] = [];

  constructor(chunk: Buffer) {
    this.chunk = chunk;
  }

  /** Puts `bytes` before the current message. */
  insert(bytes: Buffer): void {
    this.replace(bytes, 0);
  }

  /** Puts `bytes` where the first `count` bytes of the current message were. */
  replace(bytes: Buffer | null, count: number): void {
    if (this.#from < this.at) this.#parts.push(this.chunk.subarray(this.#from, this.at));
    if (bytes !== null) this.#parts.push(bytes);
    this.#from = this.at + count;
  }

  /** Everything up to `at`, as edited. */
  finish(): readonly Buffer[] {
    const isWhole = this.#from === 0 && this.at === this.chunk.length;
    if (this.#from < this.at) this.#parts.push(isWhole ? this.chunk : this.chunk.subarray(this.#from, this.at));
    return this.#parts;
  }
}

/** The index of the zero byte that ends the string at `start`. */
export function endOfString(bytes: Buffer, start: number, end = bytes.length): number {
  const at = bytes.indexOf(0, start);
  if (at === -1 || at >= end) throw new ProtocolError('string without an end');
  return at;
}

/** The current message up to the end of a name, with another name there and the length corrected. */
export function withName({ chunk, at }: ChunkEditor, nameStart: number, nameEnd: number, name: Buffer): Buffer {
  const head = Buffer.allocUnsafe(nameStart - at + name.length);
  chunk.copy(head, 0, at, nameStart);
  head.writeUInt32BE(chunk.readUInt32BE(at + 1) - (nameEnd - nameStart) + name.length, 1);
  name.copy(head, nameStart - at);
  return head;
}

export function parseMessage({ name, content }: Statement): Buffer {
  const message = Buffer.allocUnsafe(headerBytes + name.length + 1 + content.length);
  message[0] = requestTypes.parse;
  message.writeUInt32BE(message.length - 1, 1);
  name.copy(message, headerBytes);
  message[headerBytes + name.length] = 0;
  content.copy(message, headerBytes + name.length + 1);
  return message;
}

export function closeMessage({ name }: Statement): Buffer {
  const message = Buffer.allocUnsafe(headerBytes + 1 + name.length + 1);
  message[0] = requestTypes.close;
  message.writeUInt32BE(message.length - 1, 1);
  message[headerBytes] = statementTarget;
  name.copy(message, headerBytes + 1);
  message[message.length - 1] = 0;
  return message;
}
