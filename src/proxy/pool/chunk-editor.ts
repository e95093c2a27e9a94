/** Edits a chunk of a client's requests on its way to the server, and builds the few messages that a pool adds. */
import { ProtocolError } from '../protocol/wire.ts';
import { headerBytes, requestTypes, statementTarget } from './message-types.ts';
import type { Statement } from './statements.ts';

/** Walks through a chunk. Unedited bytes stay together in pieces as long as possible, without a copy. */
export class ChunkEditor {
  readonly chunk: Buffer;
  /** Start of the current message. */
  at = 0;
  /** Where the name of a statement lies in the current message; -1 when it has none, or none that can be read. */
  nameStart = -1;
  nameEnd = -1;
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

  /**
   * Finds the name in a Parse, Bind, Describe or Close that ends at `end`. A message that breaks its own rules has
   * none: the server gets it as it is, and refuses it. Throws if the name goes beyond what has arrived of the message.
   */
  findName(type: number, end: number, isWhole: boolean): void {
    const { chunk, at } = this;
    this.nameStart = -1;
    this.nameEnd = -1;
    let start = at + headerBytes;
    if (type === requestTypes.bind) start = endOfString(chunk, start, end) + 1;
    else if (type !== requestTypes.parse) {
      if (start === end || chunk[start] !== statementTarget) return;
      start += 1;
    }
    const nameEnd = start === 0 ? -1 : endOfString(chunk, start, end);
    if (nameEnd === -1) {
      if (isWhole) return;
      throw new ProtocolError('string without an end');
    }
    if (type === requestTypes.close && nameEnd !== end - 1) return;
    this.nameStart = start;
    this.nameEnd = nameEnd;
  }

  /** Everything up to `at`, as edited. */
  finish(): readonly Buffer[] {
    const isWhole = this.#from === 0 && this.at === this.chunk.length;
    if (this.#from < this.at) this.#parts.push(isWhole ? this.chunk : this.chunk.subarray(this.#from, this.at));
    return this.#parts;
  }
}

/** The index of the zero byte that ends the string at `start`; -1 when there is none before `end`. */
function endOfString(bytes: Buffer, start: number, end: number): number {
  const at = bytes.indexOf(0, start);
  return at < end ? at : -1;
}

/** The current message up to the end of a name, with another name there and the length corrected. */
export function withName({ chunk, at, nameStart, nameEnd }: ChunkEditor, name: Buffer): Buffer {
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

export function closeMessage(name: Buffer): Buffer {
  const message = Buffer.allocUnsafe(headerBytes + 1 + name.length + 1);
  message[0] = requestTypes.close;
  message.writeUInt32BE(message.length - 1, 1);
  message[headerBytes] = statementTarget;
  name.copy(message, headerBytes + 1);
  message[message.length - 1] = 0;
  return message;
}
