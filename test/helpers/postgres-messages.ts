/** Messages of the Postgres protocol as tests write them, in both directions, and streams of them cut into chunks. */
import { cstring, encodeMessage, int32 } from '../../src/proxy/protocol/wire.ts';

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

// From the client.

export const query = (sql: string) => encodeMessage('Q', cstring(sql));
export const parse = (name: string, sql: string) => encodeMessage('P', cstring(name), cstring(sql), int16(0));

/** Binds values, as text, to a portal of the statement. */
export function bind(statement: string, values: readonly string[] = [], portal = ''): Buffer {
  const fields = values.flatMap((value) => [int32(Buffer.byteLength(value)), Buffer.from(value)]);
  const count = int16(values.length);
  return encodeMessage('B', cstring(portal), cstring(statement), int16(0), count, ...fields, int16(0));
}

export const execute = (portal = '') => encodeMessage('E', cstring(portal), int32(0));
export const describeStatement = (name: string) => encodeMessage('D', Buffer.from('S'), cstring(name));
export const closeStatement = (name: string) => encodeMessage('C', Buffer.from('S'), cstring(name));
export const sync = encodeMessage('S');
export const flush = encodeMessage('H');
export const terminate = encodeMessage('X');
export const copyData = (size: number) => encodeMessage('d', Buffer.alloc(size, 'x'));
export const copyDone = encodeMessage('c');

// From the server.

export const parseComplete = encodeMessage('1');
export const bindComplete = encodeMessage('2');
export const closeComplete = encodeMessage('3');
export const noData = encodeMessage('n');
export const parameterDescription = encodeMessage('t', int16(0));
export const dataRow = (size: number) => encodeMessage('D', Buffer.alloc(size, 'x'));
export const commandComplete = (tag: string) => encodeMessage('C', cstring(tag));
export const copyInResponse = encodeMessage('G', Buffer.from([0, 0, 0]));
export const readyForQuery = (status: 'I' | 'T' | 'E' = 'I') => encodeMessage('Z', Buffer.from(status));

/** An ErrorResponse; `context` is where in a function the error happened. */
export function errorMessage(severity: 'ERROR' | 'FATAL', sqlState: string, context?: string): Buffer {
  const fields = [`S${severity}`, `V${severity}`, `C${sqlState}`, 'Mfailed'];
  if (context !== undefined) fields.push(`W${context}`);
  return encodeMessage('E', ...fields.map(cstring), Buffer.from([0]));
}

/** Cuts a stream of messages at the given offsets, which may repeat and may lie beyond its end. */
export function cutAt(whole: Buffer, offsets: readonly number[]): Buffer[] {
  const inside = offsets.map((offset) => Math.min(offset, whole.length)).sort((a, b) => a - b);
  const edges = [0, ...inside, whole.length];
  return edges.slice(1).map((edge, i) => whole.subarray(edges[i], edge));
}
