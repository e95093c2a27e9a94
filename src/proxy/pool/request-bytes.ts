/** Frontend messages as bytes: their types, the few that a pool makes itself, and a chunk on its way to a server. */
import { ProtocolError } from '../protocol/wire.ts';
import type { Statement } from './statements.ts';

const code = (letter: string) => letter.charCodeAt(0);
export const types = {
  parse: code('P'),
  bind: code('B'),
  describe: code('D'),
  execute: code('E'),
  close: code('C'),
  sync: code('S'),
  flush: code('H'),
  query: code('Q'),
  call: code('F'),
  copyData: code('d'),
  copyDone: code('c'),
  copyFail: code('f'),
  terminate: code('X'),
} as const;
export const statementKind = code('S');
export const headerBytes = 5;

/** One chunk on its way: what passes as it is, in runs as long as possible, and what is put in between. */
export class Run {
  readonly chunk: Buffer;
  at = 0;
  #from = 0;
  readonly #parts: Buffer[] = [];

  constructor(chunk: Buffer) {
    this.chunk = chunk;
  }

  /** Puts `bytes` before the current message. */
  insert(bytes: Buffer): void {
    this.replace(bytes, 0);
  }

  /** Puts `bytes` in the place of the current message's first `count` bytes. */
  replace(bytes: Buffer | null, count: number): void {
    if (this.#from < this.at) this.#parts.push(this.chunk.subarray(this.#from, this.at));
    if (bytes !== null) this.#parts.push(bytes);
    this.#from = this.at + count;
  }

  finish(): readonly Buffer[] {
    const rest = this.#from === 0 && this.at === this.chunk.length;
    if (this.#from < this.at) this.#parts.push(rest ? this.chunk : this.chunk.subarray(this.#from, this.at));
    return this.#parts;
  }
}

export function endOfString(bytes: Buffer, start: number, end = bytes.length): number {
  const at = bytes.indexOf(0, start);
  if (at === -1 || at >= end) throw new ProtocolError('string without an end');
  return at;
}

/** The current message up to the end of the name, with another name and the length that follows from it. */
export function renamed({ chunk, at }: Run, start: number, nameEnd: number, name: Buffer): Buffer {
  const head = Buffer.allocUnsafe(start - at + name.length);
  chunk.copy(head, 0, at, start);
  head.writeUInt32BE(chunk.readUInt32BE(at + 1) - (nameEnd - start) + name.length, 1);
  name.copy(head, start - at);
  return head;
}

export function parseMessage({ name, content }: Statement): Buffer {
  const message = Buffer.allocUnsafe(headerBytes + name.length + 1 + content.length);
  message[0] = types.parse;
  message.writeUInt32BE(message.length - 1, 1);
  name.copy(message, headerBytes);
  message[headerBytes + name.length] = 0;
  content.copy(message, headerBytes + name.length + 1);
  return message;
}

export function closeMessage({ name }: Statement): Buffer {
  const message = Buffer.allocUnsafe(headerBytes + 1 + name.length + 1);
  message[0] = types.close;
  message.writeUInt32BE(message.length - 1, 1);
  message[headerBytes] = statementKind;
  name.copy(message, headerBytes + 1);
  message[message.length - 1] = 0;
  return message;
}
