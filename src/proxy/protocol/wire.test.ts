import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isBetweenMessages, lastBytes } from '../sockets/boundary.ts';
import { errorResponse, parseAuthentication, parseErrorResponse, parseSaslInitialResponse } from './messages.ts';
import { parseFirstPacket } from './startup.ts';
import { encodeMessage, FieldReader, FrameBuffer, type Message, ProtocolError } from './wire.ts';

const maxBytes = 1_000;
const bytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((array) => Buffer.from(array));
const messages = fc.array(
  fc.record({ type: fc.integer({ min: 33, max: 126 }).map((code) => String.fromCharCode(code)), body: bytes(100) }),
  { maxLength: 20 },
);

/** Cuts at the given offsets, which may repeat and lie beyond the end. */
function cut(whole: Buffer, offsets: readonly number[]): Buffer[] {
  const edges = [0, ...offsets.map((offset) => Math.min(offset, whole.length)).sort((a, b) => a - b), whole.length];
  return edges.slice(1).map((edge, i) => whole.subarray(edges[i], edge));
}
const offsets = fc.array(fc.nat({ max: 2_500 }), { maxLength: 50 });

function readAll(chunks: readonly Buffer[]): Message[] {
  const frames = new FrameBuffer();
  const read: Message[] = [];
  for (const chunk of chunks) {
    frames.push(chunk);
    for (let message = frames.nextMessage(maxBytes); message; message = frames.nextMessage(maxBytes))
      read.push(message);
  }
  return read;
}

describe('FrameBuffer', () => {
  it('gives back the messages that went in, however they were cut', () => {
    fc.assert(
      fc.property(messages, offsets, (sent, edges) => {
        const whole = Buffer.concat(sent.map(({ type, body }) => encodeMessage(type, body)));
        expect(readAll(cut(whole, edges))).toEqual(sent);
      }),
    );
  });

  it('gives back whole messages only, when the stream ends early, and keeps the rest', () => {
    fc.assert(
      fc.property(messages, fc.nat({ max: 2_500 }), offsets, (sent, end, edges) => {
        const encoded = sent.map(({ type, body }) => encodeMessage(type, body));
        const part = Buffer.concat(encoded).subarray(0, end);
        const frames = new FrameBuffer();
        for (const chunk of cut(part, edges)) frames.push(chunk);
        let left = part.length;
        for (let i = 0; ; i++) {
          const message = frames.nextMessage(maxBytes);
          if (!message) break;
          expect(message).toEqual(sent[i]);
          left -= message.body.length + 5;
        }
        expect(frames.length).toBe(left);
        expect(frames.takeRest()).toEqual(part.subarray(part.length - left));
        expect(frames.length).toBe(0);
      }),
    );
  });

  it('refuses a length outside the bounds as soon as it can be read', () => {
    const lengths = fc.oneof(fc.nat({ max: 3 }), fc.integer({ min: maxBytes + 1, max: 0xffffffff }));
    fc.assert(
      fc.property(lengths, (length) => {
        const header = encodeMessage('Q');
        header.writeUInt32BE(length, 1);
        expect(() => readAll([header])).toThrow(ProtocolError);
        const frames = new FrameBuffer();
        frames.push(header.subarray(1));
        expect(() => frames.nextPacket(maxBytes)).toThrow(ProtocolError);
      }),
    );
  });

  it('reads packets without a type the same way', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ minLength: 4, maxLength: 50 }), { maxLength: 10 }),
        offsets,
        (bodies, edges) => {
          const whole = Buffer.concat(
            bodies.map((body) => {
              const length = Buffer.alloc(4);
              length.writeUInt32BE(body.length + 4);
              return Buffer.concat([length, body]);
            }),
          );
          const frames = new FrameBuffer();
          const read: Buffer[] = [];
          for (const chunk of cut(whole, edges)) {
            frames.push(chunk);
            for (let packet = frames.nextPacket(maxBytes); packet; packet = frames.nextPacket(maxBytes))
              read.push(packet);
          }
          expect(read).toEqual(bodies.map((body) => Buffer.from(body)));
        },
      ),
    );
  });

  it('meets garbage with a ProtocolError or with patience, and nothing else', () => {
    fc.assert(
      fc.property(bytes(300), offsets, (garbage, edges) => {
        try {
          readAll(cut(garbage, edges));
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(ProtocolError);
        }
      }),
    );
  });
});

describe('parsers of bodies', () => {
  it.each([
    ['first packet', parseFirstPacket],
    ['SASL response', parseSaslInitialResponse],
    ['authentication request', parseAuthentication],
    ['error', parseErrorResponse],
  ])('meet garbage with a value or a ProtocolError: %s', (_name, parse) => {
    fc.assert(
      fc.property(bytes(200), (garbage) => {
        try {
          parse(garbage);
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(ProtocolError);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('read back the error that we write', () => {
    const frames = new FrameBuffer();
    frames.push(errorResponse({ sqlState: '57P03', message: 'n\0o room' }));
    const message = frames.nextMessage(maxBytes);
    expect(parseErrorResponse(message?.body ?? Buffer.alloc(0))).toEqual({ sqlState: '57P03', message: 'n o room' });
  });

  it('refuse text that is not UTF-8', () => {
    expect(() => new FieldReader(Buffer.from([0xc3, 0x28, 0])).cstring()).toThrow(ProtocolError);
  });
});

describe('the last bytes of a server', () => {
  const row = (size: number) => encodeMessage('D', Buffer.alloc(size, 'x'));
  const ready = encodeMessage('Z', Buffer.from('I'));

  it('show the end of an answer, wherever its last chunk began', () => {
    fc.assert(
      fc.property(fc.nat({ max: 9_000 }), fc.nat({ max: 9_000 }), (size, start) => {
        const answer = Buffer.concat([row(size), ready]);
        const chunk = answer.subarray(Math.min(start, answer.length - ready.length));
        expect(isBetweenMessages(lastBytes(chunk))).toBe(true);
      }),
    );
  });

  it('show whole messages that came in one piece, and not the middle of one', () => {
    expect(isBetweenMessages(Buffer.alloc(0))).toBe(true);
    const sent = fc.array(fc.tuple(fc.constantFrom(...'SNAGTD'), bytes(100)), { maxLength: 20 });
    fc.assert(
      fc.property(sent, fc.nat({ max: 2_500 }), (list, end) => {
        const whole = Buffer.concat(list.map(([type, body]) => encodeMessage(type, body)));
        expect(isBetweenMessages(lastBytes(whole))).toBe(true);
        const opened = Buffer.concat([whole, row(2_500).subarray(0, end + 1)]);
        expect(isBetweenMessages(lastBytes(opened))).toBe(false);
      }),
    );
  });

  it('of a long chunk are not taken for a message, whatever they look like', () => {
    const short = encodeMessage('D', Buffer.from('1'));
    expect(isBetweenMessages(lastBytes(Buffer.concat([Buffer.alloc(9_000, 'x'), short])))).toBe(false);
  });

  it('are few, whatever the chunk was', () => {
    expect(lastBytes(row(60_000)).length).toBeLessThan(10);
  });
});
