/**
 * WebSocket frames (RFC 6455) as a server reads and writes them. Postgres does not care where a WebSocket message
 * begins or ends, so the payloads of a client's data frames are one stream of bytes, passed on in the pieces in which
 * they arrive: a frame of any length takes no memory, and backpressure works inside a frame. No extension is
 * negotiated, so every reserved bit is an error.
 */
import { isUtf8 } from 'node:buffer';

export const opcodes = { continuation: 0x0, text: 0x1, binary: 0x2, close: 0x8, ping: 0x9, pong: 0xa } as const;

/** Why a WebSocket is closed, as a Close frame says it. */
export const closeCodes = { normal: 1000, protocolError: 1002, unsupportedData: 1003, invalidPayload: 1007 } as const;

/** The client has sent something that is not allowed; the WebSocket is closed with this code. */
export class FrameError extends Error {
  readonly closeCode: number;

  constructor(closeCode: number, message: string) {
    super(message);
    this.name = 'FrameError';
    this.closeCode = closeCode;
  }
}

export interface FrameListener {
  /** A piece of the payload of a data frame; it is part of the chunk that was read. */
  onData(bytes: Buffer): void;
  onPing(payload: Buffer): void;
  /** Nothing is read after this; without a code of the client's it is 1000. */
  onClose(code: number): void;
}

const controlBytesMax = 125;
const maskBytes = 4;
const nothing = Buffer.alloc(0);

export class FrameReader {
  readonly #listener: FrameListener;
  /** The start of a header whose rest has not arrived. */
  #partialHeader: Buffer = nothing;
  /** Opcode of the frame whose payload is being read; null between two frames. */
  #opcode: number | null = null;
  #left = 0;
  readonly #mask = Buffer.alloc(maskBytes);
  /** Which byte of the mask is for the next byte of the payload. */
  #maskAt = 0;
  #isFinal = true;
  /** A message has begun and its final frame has not. */
  #isMidMessage = false;
  #control: Buffer = nothing;
  #isClosed = false;

  constructor(listener: FrameListener) {
    this.#listener = listener;
  }

  /** Unmasks in place: the chunk belongs to the reader. Throws FrameError. */
  read(chunk: Buffer): void {
    const bytes = this.#partialHeader.length > 0 ? Buffer.concat([this.#partialHeader, chunk]) : chunk;
    this.#partialHeader = nothing;
    let at = 0;
    while (!this.#isClosed) {
      if (this.#opcode === null) {
        const size = this.#readHeader(bytes, at);
        if (size === 0) {
          if (at < bytes.length) this.#partialHeader = Buffer.from(bytes.subarray(at));
          return;
        }
        at += size;
      }
      const piece = bytes.subarray(at, at + this.#left);
      at += piece.length;
      this.#takePayload(piece);
      if (this.#left > 0) return;
      this.#endFrame();
    }
  }

  /** Returns the length of the header; 0 when not all of it has arrived. */
  #readHeader(bytes: Buffer, at: number): number {
    const available = bytes.length - at;
    if (available < 2) return 0;
    const first = bytes[at] ?? 0;
    const second = bytes[at + 1] ?? 0;
    const opcode = first & 0x0f;
    const isFinal = (first & 0x80) !== 0;
    const shortLength = second & 0x7f;
    // Checked before the rest arrives: a client that is wrong already must not be waited for.
    if ((first & 0x70) !== 0) throw protocolError('a reserved bit is set');
    if ((second & 0x80) === 0) throw protocolError('a frame of a client must be masked');
    this.#requireInOrder(opcode, isFinal, shortLength);
    const lengthBytes = shortLength === 126 ? 2 : shortLength === 127 ? 8 : 0;
    const size = 2 + lengthBytes + maskBytes;
    if (available < size) return 0;
    this.#opcode = opcode;
    this.#isFinal = isFinal;
    this.#left = lengthBytes === 0 ? shortLength : readLength(bytes, at + 2, lengthBytes);
    bytes.copy(this.#mask, 0, at + size - maskBytes, at + size);
    this.#maskAt = 0;
    return size;
  }

  #requireInOrder(opcode: number, isFinal: boolean, shortLength: number): void {
    switch (opcode) {
      case opcodes.continuation:
        if (!this.#isMidMessage) throw protocolError('a continuation without a message');
        return;
      case opcodes.binary:
        if (this.#isMidMessage) throw protocolError('a message inside another');
        return;
      case opcodes.text:
        throw new FrameError(closeCodes.unsupportedData, 'text messages are not supported; send binary ones');
      case opcodes.close:
      case opcodes.ping:
      case opcodes.pong:
        if (!isFinal) throw protocolError('a control frame must not be fragmented');
        if (shortLength > controlBytesMax) throw protocolError('a control frame has at most 125 bytes');
        return;
      default:
        throw protocolError('unknown opcode');
    }
  }

  #takePayload(piece: Buffer): void {
    if (piece.length === 0) return;
    unmask(piece, this.#mask, this.#maskAt);
    this.#maskAt = (this.#maskAt + piece.length) % maskBytes;
    this.#left -= piece.length;
    if (isControl(this.#opcode ?? 0)) this.#control = Buffer.concat([this.#control, piece]);
    else this.#listener.onData(piece);
  }

  #endFrame(): void {
    const opcode = this.#opcode ?? 0;
    this.#opcode = null;
    if (!isControl(opcode)) {
      this.#isMidMessage = !this.#isFinal;
      return;
    }
    const payload = this.#control;
    this.#control = nothing;
    if (opcode === opcodes.ping) this.#listener.onPing(payload);
    if (opcode !== opcodes.close) return;
    this.#isClosed = true;
    this.#listener.onClose(readCloseCode(payload));
  }
}

/** A whole frame of a server; frames of a server are not masked, and never fragmented here. */
export function encodeFrame(opcode: number, payload: Buffer): Buffer {
  const header = headerBytes(payload.length);
  const frame = Buffer.allocUnsafe(header + payload.length);
  writeHeader(frame, opcode, payload.length);
  payload.copy(frame, header);
  return frame;
}

/** For a payload that is too long to be copied behind its header. */
export function encodeHeader(opcode: number, length: number): Buffer {
  const header = Buffer.allocUnsafe(headerBytes(length));
  writeHeader(header, opcode, length);
  return header;
}

export function encodeClose(code: number): Buffer {
  const payload = Buffer.allocUnsafe(2);
  payload.writeUInt16BE(code);
  return encodeFrame(opcodes.close, payload);
}

/** XORs the bytes with the mask, beginning at byte `maskAt` of it: four at a time if there are many. */
export function unmask(bytes: Buffer, mask: Uint8Array, maskAt: number): void {
  const end = bytes.length;
  const maskByte = (at: number) => mask[(maskAt + at) & 3] ?? 0;
  let at = 0;
  const unmaskUntil = (limit: number) => {
    for (; at < limit; at++) bytes[at] = (bytes[at] ?? 0) ^ maskByte(at);
  };
  if (end >= wordsWorthwhile) {
    unmaskUntil((maskBytes - (bytes.byteOffset % maskBytes)) % maskBytes);
    const words = new Int32Array(bytes.buffer, bytes.byteOffset + at, Math.floor((end - at) / maskBytes));
    const [key = 0] = new Int32Array(
      Uint8Array.of(maskByte(at), maskByte(at + 1), maskByte(at + 2), maskByte(at + 3)).buffer,
    );
    for (let word = 0; word < words.length; word++) words[word] = (words[word] ?? 0) ^ key;
    at += words.length * maskBytes;
  }
  unmaskUntil(end);
}

const wordsWorthwhile = 64;

function isControl(opcode: number): boolean {
  return opcode >= opcodes.close;
}

function headerBytes(length: number): number {
  if (length <= controlBytesMax) return 2;
  return length <= 0xffff ? 4 : 10;
}

function writeHeader(frame: Buffer, opcode: number, length: number): void {
  frame[0] = 0x80 | opcode;
  if (length <= controlBytesMax) {
    frame[1] = length;
  } else if (length <= 0xffff) {
    frame[1] = 126;
    frame.writeUInt16BE(length, 2);
  } else {
    frame[1] = 127;
    frame.writeBigUInt64BE(BigInt(length), 2);
  }
}

function readLength(bytes: Buffer, at: number, lengthBytes: number): number {
  if (lengthBytes === 2) return bytes.readUInt16BE(at);
  const length = bytes.readBigUInt64BE(at);
  if (length > BigInt(Number.MAX_SAFE_INTEGER)) throw protocolError('a frame is too long');
  return Number(length);
}

function readCloseCode(payload: Buffer): number {
  if (payload.length === 0) return closeCodes.normal;
  if (payload.length === 1) throw protocolError('a close code has two bytes');
  const code = payload.readUInt16BE(0);
  const isDefined =
    (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || (code >= 3000 && code < 5000);
  if (!isDefined) throw protocolError('there is no such close code');
  if (!isUtf8(payload.subarray(2))) throw new FrameError(closeCodes.invalidPayload, 'a close reason is not UTF-8');
  return code;
}

function protocolError(message: string): FrameError {
  return new FrameError(closeCodes.protocolError, message);
}
