/** Requests for SQL over HTTP, and WebSockets with frames of any kind, at the port of a whole Catnap. */
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import type { Random } from '../random.ts';
import type { Findings } from './findings.ts';
import { mutateText, mutateValue, nastyTexts } from './nasty.ts';

export interface SqlTarget {
  readonly httpPort: number;
  readonly uri: string;
}

const queries = [
  'select 1',
  'select $1::text',
  'select $1::int[]',
  'select 1/0',
  '',
  ';',
  'select 1; select 2',
  'begin',
  'rollback',
  'copy pg_class to stdout',
  'copy fuzz_rows from stdin',
  "select repeat('x', 10000) from generate_series(1, 20)",
  "select '{}'::jsonb, now(), null, 1.5::numeric, array[[1,2],[3,4]], '\\x00ff'::bytea",
  'listen x',
  'set role nobody',
  'discard all',
];
const levels = ['ReadUncommitted', 'ReadCommitted', 'RepeatableRead', 'Serializable', 'Nothing', ''];

function makeBody(random: Random): unknown {
  const single = () => ({
    query: random.pick(queries),
    params: Array.from({ length: random.below(3) }, () => random.pick<unknown>(['1', 7, true, null, [1, 2], { a: 1 }])),
    ...(random.chance(0.1) ? { arrayMode: random.chance(0.5) } : {}),
  });
  return random.chance(0.6) ? single() : { queries: Array.from({ length: random.below(4) }, single) };
}

function makeHeaders(random: Random, uri: string): Record<string, string> {
  const headers: Record<string, string> = { 'Neon-Connection-String': uri };
  const forged = [
    uri.replace(/:[^:@]+@/, ':wrong@'),
    uri.replace(/\/\/[^:]+:/, '//nobody:'),
    uri.replace(/@ep-[^.]+/, '@ep-nowhere-1'),
    uri.replace(/\?.*/, '?options=endpoint%3Dep-x'),
    'postgresql://',
    'postgresql://a:b@/c',
    'http://a:b@c/d',
    '%',
    'postgresql://%zz:%00@ep-a.localhost/%ff',
    `postgresql://a:b@${'x'.repeat(3_000)}/d`,
  ];
  if (random.chance(0.15)) headers['Neon-Connection-String'] = random.pick(forged);
  if (random.chance(0.3)) headers['Neon-Raw-Text-Output'] = random.pick(['true', 'false', 'maybe']);
  if (random.chance(0.3)) headers['Neon-Array-Mode'] = random.pick(['true', 'false', '1']);
  if (random.chance(0.3)) headers['Neon-Batch-Isolation-Level'] = random.pick(levels);
  if (random.chance(0.2)) headers['Neon-Batch-Read-Only'] = random.pick(['true', 'x']);
  if (random.chance(0.1)) headers['Neon-Batch-Deferrable'] = 'true';
  if (random.chance(0.1)) headers.Authorization = random.pick(['Bearer', 'Bearer a.b.c', 'Basic eDp5']);
  if (random.chance(0.3)) headers['Content-Type'] = random.pick(['text/plain', 'application/json', 'nonsense']);
  return headers;
}

const internal = /\n\s+at |node_modules|\.(ts|js):\d|BUG|is not a function|Cannot read/;

export async function trySql(random: Random, { httpPort, uri }: SqlTarget, findings: Findings): Promise<void> {
  const right = makeBody(random);
  const body = random.chance(0.4)
    ? Buffer.from(JSON.stringify(right))
    : random.chance(0.6)
      ? Buffer.from(JSON.stringify(mutateValue(right, random).value) ?? '')
      : mutateText(JSON.stringify(right), random);
  const headers = makeHeaders(random, uri);
  const example = `${JSON.stringify({ ...headers, 'Neon-Connection-String': '…' })} ${body.toString('latin1').slice(0, 400)}`;
  try {
    const reply = await fetch(`http://127.0.0.1:${httpPort}/sql`, {
      method: 'POST',
      headers,
      body: new Uint8Array(body),
      signal: AbortSignal.timeout(150_000),
    });
    const text = await reply.text();
    if (reply.status >= 500) findings.add(`/sql: a status of ${reply.status}`, `${example}\n  ${text.slice(0, 300)}`);
    if (reply.status >= 400 && internal.test(text)) findings.add('/sql: internal text', `${example}\n  ${text}`);
    if (reply.status < 300) JSON.parse(text);
  } catch (error) {
    findings.add(`/sql: ${error}`, example);
  }
}

/** A handshake that may be wrong, then frames that may be wrong; the connection has an end in any case. */
export async function tryWebSocket(random: Random, { httpPort }: SqlTarget, findings: Findings): Promise<void> {
  const headers = [
    `GET ${random.pick(['/v2', '/v2?address=ep-a.localhost:5432', '/v2?address=%', '/v2/', '//', '/v2?', '/v2#'])} HTTP/1.1`,
    `Host: ${random.pick(['localhost', 'ep-a.localhost', '[', '', 'a:b:c'])}`,
    'Connection: Upgrade',
    `Upgrade: ${random.pick(['websocket', 'websocket', 'WebSocket', 'h2c'])}`,
    `Sec-WebSocket-Version: ${random.pick(['13', '13', '13', '8', ''])}`,
    `Sec-WebSocket-Key: ${random.chance(0.9) ? randomBytes(16).toString('base64') : 'short'}`,
  ].filter(() => random.chance(0.97));
  const frames = Array.from({ length: random.below(5) }, () => makeFrame(random));
  const bytes = Buffer.concat([Buffer.from(`${headers.join('\r\n')}\r\n\r\n`, 'latin1'), ...frames]);
  const answer = await exchange(httpPort, bytes, random.chance(0.5));
  const example = JSON.stringify(bytes.toString('latin1').slice(0, 500));
  if (answer === null) findings.add('a WebSocket has no end', example);
  else if (/^HTTP\/1\.1 5/.test(answer)) findings.add(`a WebSocket: ${answer.slice(0, 30)}`, example);
}

function makeFrame(random: Random): Buffer {
  const payload = Buffer.from(
    random.pick([...nastyTexts.filter((text) => text.length < 3_000), '\0\0\0\x08\x04\xd2\x16/']),
  );
  const opcode = random.pick([2, 2, 2, 0, 1, 8, 9, 10, 3, 15]);
  const flags = random.pick([0x80, 0x80, 0x80, 0, 0xf0]);
  const isMasked = random.chance(0.9);
  const length = random.chance(0.9) ? payload.length : random.below(65_536);
  const head = Buffer.alloc(length < 126 ? 2 : 4);
  head[0] = flags | opcode;
  head[1] = (isMasked ? 0x80 : 0) | (length < 126 ? length : 126);
  if (length >= 126) head.writeUInt16BE(length, 2);
  const mask = Buffer.from([1, 2, 3, 4]);
  const masked = payload.map((byte, at) => byte ^ (isMasked ? (mask[at % 4] ?? 0) : 0));
  return Buffer.concat([head, ...(isMasked ? [mask] : []), masked]);
}

/** Everything that came back, as text; null if the connection has no end. */
function exchange(port: number, bytes: Buffer, isAbrupt: boolean): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    const chunks: Buffer[] = [];
    const late = setTimeout(() => {
      socket.destroy();
      resolve(null);
    }, 150_000);
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      if (isAbrupt) socket.destroy();
    });
    socket.on('close', () => {
      clearTimeout(late);
      resolve(Buffer.concat(chunks).toString('latin1'));
    });
    socket.end(bytes);
  });
}
