/**
 * Frames of the Postgres protocol: cutting a byte stream into them and reading the fields inside one. Every length
 * that a peer states is checked against a bound before anything is kept or allocated for it. The meaning of the
 * messages is in `messages.ts`.
 */

/** The peer broke the protocol; the message is safe to show to it. */
export class ProtocolError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ProtocolError';
  }
}

/** What came in place of a startup packet is none. As in Postgres, the connection is closed without a message. */
export class NoStartupPacket extends ProtocolError {
  constructor(message: string) {
    super(message);
    this.name = 'NoStartupPacket';
  }
}

export interface Message {
  /** One ASCII character. */
  readonly type: string;
  readonly body: Buffer;
}

/** A message as it goes over the wire: type, length, body. */
export function encodeMessage(type: string, ...parts: readonly Buffer[]): Buffer {
  let length = 4;
  for (const part of parts) length += part.length;
  const header = Buffer.allocUnsafe(5);
  header.write(type, 0, 1, 'latin1');
  header.writeUInt32BE(length, 1);
  return Buffer.concat([header, ...parts], length + 1);
}

export function int32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeInt32BE(value | 0);
  return bytes;
}

export function cstring(text: string): Buffer {
  return Buffer.from(`${text}\0`, 'utf8');
}

/** Collects chunks and returns whole frames, however the bytes were cut into chunks. */
export class FrameBuffer {
  #chunks: Buffer[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(chunk: Buffer): void {
    if (chunk.length === 0) return;
    this.#chunks.push(chunk);
    this.#length += chunk.length;
  }

  firstByte(): number | null {
    return this.#chunks[0]?.[0] ?? null;
  }

  /** The next packet without a type byte (the form before authentication), without its length word. */
  nextPacket(maxBytes: number): Buffer | null {
    if (this.#length < 4) return null;
    const length = this.#peek(4).readUInt32BE(0);
    // A length word, a code, and no more than the bound.
    if (length < 8 || length > maxBytes) throw new NoStartupPacket('invalid length of startup packet');
    if (this.#length < length) return null;
    return this.#take(length).subarray(4);
  }

  nextMessage(maxBytes: number): Message | null {
    if (this.#length < 5) return null;
    const header = this.#peek(5);
    const length = header.readUInt32BE(1);
    if (length < 4 || length > maxBytes) throw new ProtocolError('invalid message length');
    if (this.#length < length + 1) return null;
    const frame = this.#take(length + 1);
    return { type: String.fromCharCode(frame[0] ?? 0), body: frame.subarray(5) };
  }

  /** Everything that was not returned yet; the buffer is empty afterwards. */
  takeRest(): Buffer {
    return this.#take(this.#length);
  }

  #peek(count: number): Buffer {
    const first = this.#chunks[0];
    if (first !== undefined && first.length >= count) return first;
    return this.#joined();
  }

  #take(count: number): Buffer {
    const first = this.#chunks[0];
    const source = first !== undefined && first.length >= count ? first : this.#joined();
    this.#length -= count;
    if (source.length > count) this.#chunks[0] = source.subarray(count);
    else this.#chunks.shift();
    return source.subarray(0, count);
  }

  #joined(): Buffer {
    const all = Buffer.concat(this.#chunks, this.#length);
    this.#chunks = all.length > 0 ? [all] : [];
    return all;
  }
}

/** Reads the fields of one body in order; reading past the end throws a ProtocolError, never an error of Buffer. */
export class FieldReader {
  readonly #body: Buffer;
  #at = 0;

  constructor(body: Buffer) {
    this.#body = body;
  }

  get remaining(): number {
    return this.#body.length - this.#at;
  }

  byte(): number {
    return this.bytes(1)[0] ?? 0;
  }

  int32(): number {
    return this.bytes(4).readInt32BE(0);
  }

  bytes(count: number): Buffer {
    if (count < 0 || count > this.remaining) throw new ProtocolError('message is too short');
    this.#at += count;
    return this.#body.subarray(this.#at - count, this.#at);
  }

  /** Up to the next zero, which is skipped. */
  cstringBytes(): Buffer {
    const end = this.#body.indexOf(0, this.#at);
    if (end === -1) throw new ProtocolError('string without an end');
    const bytes = this.bytes(end - this.#at);
    this.#at += 1;
    return bytes;
  }

  /** Refuses bytes that are not UTF-8: they could not be passed on unchanged. */
  cstring(): string {
    const bytes = this.cstringBytes();
    const text = bytes.toString('utf8');
    if (!Buffer.from(text).equals(bytes)) throw new ProtocolError('string is not UTF-8');
    return text;
  }

  rest(): Buffer {
    return this.bytes(this.remaining);
  }
}
