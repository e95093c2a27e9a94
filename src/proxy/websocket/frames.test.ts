import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeHeader, FrameError, FrameReader, opcodes, unmask } from './frames.ts';

interface ClientFrame {
  readonly opcode: number;
  readonly payload: Buffer;
  readonly isFinal?: boolean;
  readonly mask?: Buffer;
}

/** As a client sends it, masked. */
function clientFrame({ opcode, payload, isFinal = true, mask = Buffer.from([1, 2, 3, 4]) }: ClientFrame): Buffer {
  const header = encodeHeader(opcode, payload.length);
  if (!isFinal) header[0] = (header[0] ?? 0) & 0x7f;
  header[1] = (header[1] ?? 0) | 0x80;
  return Buffer.concat([header, mask, payload.map((byte, at) => byte ^ (mask[at % 4] ?? 0))]);
}

/** What a reader reports for these chunks, with pieces of data joined. */
function readAll(chunks: readonly Buffer[]) {
  const data: Buffer[] = [];
  const pings: string[] = [];
  const closes: number[] = [];
  const reader = new FrameReader({
    onData: (bytes) => data.push(Buffer.from(bytes)),
    onPing: (payload) => pings.push(payload.toString('hex')),
    onClose: (code) => closes.push(code),
  });
  for (const chunk of chunks) reader.read(Buffer.from(chunk));
  return { data: Buffer.concat(data).toString('hex'), pings, closes };
}

function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = [];
  let at = 0;
  for (const size of sizes) {
    chunks.push(bytes.subarray(at, at + size));
    at += size;
  }
  return [...chunks, bytes.subarray(at)];
}

const bytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((array) => Buffer.from(array));
const mask = fc.uint8Array({ minLength: 4, maxLength: 4 }).map((array) => Buffer.from(array));
const sizes = fc.array(fc.integer({ min: 0, max: 200 }), { maxLength: 30 });
/** A message in one or more frames, with pings between them. */
const message = fc.array(fc.record({ payload: bytes(300), mask, ping: fc.option(bytes(125)) }), { minLength: 1 });

describe('FrameReader', () => {
  it('joins the payloads of all data frames, however messages and bytes are cut', () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 5 }), sizes, (messages, cuts) => {
        const frames: Buffer[] = [];
        const payloads: Buffer[] = [];
        const pings: string[] = [];
        for (const parts of messages) {
          parts.forEach(({ payload, mask: key, ping }, at) => {
            const opcode = at === 0 ? opcodes.binary : opcodes.continuation;
            frames.push(clientFrame({ opcode, payload, isFinal: at === parts.length - 1, mask: key }));
            payloads.push(payload);
            if (ping === null) return;
            frames.push(clientFrame({ opcode: opcodes.ping, payload: ping, mask: key }));
            pings.push(ping.toString('hex'));
          });
        }
        const read = readAll(cut(Buffer.concat(frames), cuts));
        expect(read).toEqual({ data: Buffer.concat(payloads).toString('hex'), pings, closes: [] });
      }),
    );
  });

  it('passes a frame on before all of it has arrived', () => {
    const frame = clientFrame({ opcode: opcodes.binary, payload: Buffer.alloc(100_000, 7) });
    expect(readAll([frame.subarray(0, 1_014)]).data).toBe('07'.repeat(1_000));
  });

  it('takes arbitrary bytes without any error but its own', () => {
    fc.assert(
      fc.property(bytes(400), sizes, (noise, cuts) => {
        try {
          readAll(cut(noise, cuts));
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(FrameError);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  it.each([
    ['is not masked', Buffer.from([0x82, 1, 0]), 1002],
    ['has a reserved bit', Buffer.from([0xc2, 0x80]), 1002],
    ['is text', clientFrame({ opcode: opcodes.text, payload: Buffer.from('a') }), 1003],
    ['has an unknown opcode', Buffer.from([0x83, 0x80]), 1002],
    ['has an unknown control opcode', Buffer.from([0x8b, 0x80]), 1002],
    ['continues nothing', clientFrame({ opcode: opcodes.continuation, payload: Buffer.alloc(1) }), 1002],
    ['is a ping in pieces', clientFrame({ opcode: opcodes.ping, payload: Buffer.alloc(1), isFinal: false }), 1002],
    ['is a ping of 126 bytes', clientFrame({ opcode: opcodes.ping, payload: Buffer.alloc(126) }), 1002],
    ['is longer than any number', Buffer.from([0x82, 0xff, 0xff, ...Buffer.alloc(11)]), 1002],
    ['closes with half a code', clientFrame({ opcode: opcodes.close, payload: Buffer.alloc(1) }), 1002],
    ['closes with no such code', clientFrame({ opcode: opcodes.close, payload: Buffer.from([3, 0xed]) }), 1002],
    ['closes with a bad reason', clientFrame({ opcode: opcodes.close, payload: Buffer.from([3, 0xe8, 0xff]) }), 1007],
  ])('refuses a frame that %s', (_what, frame, closeCode) => {
    expect(() => readAll([frame])).toThrow(expect.objectContaining({ name: 'FrameError', closeCode }));
  });

  it('refuses a message inside another', () => {
    const first = clientFrame({ opcode: opcodes.binary, payload: Buffer.alloc(1), isFinal: false });
    expect(() => readAll([first, clientFrame({ opcode: opcodes.binary, payload: Buffer.alloc(1) })])).toThrow('inside');
  });

  it('reads nothing after a Close frame, whose code is 1000 if there is none', () => {
    const close = clientFrame({ opcode: opcodes.close, payload: Buffer.alloc(0) });
    const going = clientFrame({ opcode: opcodes.close, payload: Buffer.from([3, 0xe9, 0x62, 0x79, 0x65]) });
    expect(readAll([close, Buffer.from([0xff, 0xff])])).toEqual({ data: '', pings: [], closes: [1000] });
    expect(readAll([going, close])).toEqual({ data: '', pings: [], closes: [1001] });
  });
});

describe('unmask', () => {
  it('is the same for every alignment and length', () => {
    fc.assert(
      fc.property(bytes(500), mask, fc.nat(3), fc.nat(7), (payload, key, maskAt, offset) => {
        const place = Buffer.alloc(payload.length + offset).subarray(offset);
        payload.copy(place);
        unmask(place, key, maskAt);
        expect(place).toEqual(Buffer.from(payload.map((byte, at) => byte ^ (key[(maskAt + at) % 4] ?? 0))));
      }),
    );
  });
});
