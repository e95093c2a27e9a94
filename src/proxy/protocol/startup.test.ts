import { describe, expect, it } from 'vitest';
import { cancelRequest, requestCodes, startupMessage } from './messages.ts';
import { parseFirstPacket } from './startup.ts';
import { cstring, int32, ProtocolError } from './wire.ts';

const body = (packet: Buffer) => packet.subarray(4);
const startup = (version: number, ...words: string[]) =>
  Buffer.concat([int32(version), ...words.map(cstring), Buffer.from([0])]);

describe('parseFirstPacket', () => {
  it('knows the four kinds', () => {
    expect(parseFirstPacket(int32(requestCodes.ssl))).toEqual({ kind: 'ssl' });
    expect(parseFirstPacket(int32(requestCodes.gssenc))).toEqual({ kind: 'gssenc' });
    const key = { processId: 12, secret: -34 };
    expect(parseFirstPacket(body(cancelRequest(key)))).toEqual({ kind: 'cancel', key });
    expect(parseFirstPacket(body(startupMessage([['user', 'ann']])))).toEqual({
      kind: 'startup',
      minorVersion: 0,
      parameters: new Map([['user', 'ann']]),
      extensions: [],
    });
  });

  it('keeps the last of a repeated name, empty values, and apart the protocol extensions', () => {
    const packet = startup((3 << 16) | 2, 'user', 'a', 'user', 'b', '_pq_.x', '1', 'options', '');
    expect(parseFirstPacket(packet)).toEqual({
      kind: 'startup',
      minorVersion: 2,
      parameters: new Map([
        ['user', 'b'],
        ['options', ''],
      ]),
      extensions: ['_pq_.x'],
    });
  });

  it.each([
    ['major version 2', startup(2 << 16, 'user', 'a')],
    ['major version 4', startup(4 << 16, 'user', 'a')],
    ['no terminator', startup(3 << 16, 'user', 'a').subarray(0, -1)],
    ['a name without a value', startup(3 << 16, 'user').subarray(0, -1)],
    ['bytes behind the terminator', Buffer.concat([startup(3 << 16, 'user', 'a'), Buffer.from('x')])],
    ['a cancel request that is too short', body(cancelRequest({ processId: 1, secret: 1 })).subarray(0, 10)],
    ['a cancel request that is too long', Buffer.concat([body(cancelRequest({ processId: 1, secret: 1 })), int32(1)])],
    ['a name that is not UTF-8', Buffer.concat([int32(3 << 16), Buffer.from([0xff, 0, 0x61, 0, 0])])],
  ])('refuses %s', (_name, packet) => {
    expect(() => parseFirstPacket(packet)).toThrow(ProtocolError);
  });
});
