/** Connections that may never become sessions: startup packets, negotiations and logins, right in most places. */
import { connect as connectTls } from 'node:tls';
import { requestCodes, saslInitialResponse, startupMessage } from '../../../src/proxy/protocol/messages.ts';
import { encodeMessage, int32 } from '../../../src/proxy/protocol/wire.ts';
import type { Random } from '../random.ts';
import type { Findings } from './findings.ts';
import { nastyTexts } from './nasty.ts';
import { Hang, hangMs, type Target, WireClient } from './wire-client.ts';

const code = (value: number) => Buffer.concat([int32(8), int32(value)]);
const names = ['user', 'database', 'options', 'replication', 'application_name', '_pq_.x', 'client_encoding', ''];

/** Bytes before a session: each piece may be right, wrong, missing or twice. */
function makeOpening(random: Random, { user, database }: Target): Buffer {
  const pieces: Buffer[] = [];
  for (let left = random.below(3); left > 0; left--) {
    pieces.push(code(random.pick([requestCodes.ssl, requestCodes.gssenc, random.below(2 ** 31)])));
  }
  if (random.chance(0.2)) {
    const key = Buffer.alloc(random.pick([8, 8, 4, 0, 256]), random.below(256));
    pieces.push(Buffer.concat([int32(8 + key.length), int32(requestCodes.cancel), key]));
  }
  const parameters: [string, string][] = [
    ['user', random.chance(0.7) ? user : random.pick(nastyTexts)],
    ['database', random.chance(0.8) ? database : random.pick(nastyTexts)],
    ['options', random.pick(['endpoint=ep-a', 'endpoint=ep-a-pooler', 'endpoint=', '-c work_mem=1MB', '\\', "'"])],
  ];
  while (random.chance(0.4)) parameters.push([random.pick(names), random.pick(nastyTexts).slice(0, 9_000)]);
  pieces.push(startupMessage(parameters.filter(() => random.chance(0.9))));
  while (random.chance(0.5)) pieces.push(makeProof(random));
  const whole = Buffer.concat(pieces);
  return random.chance(0.5) ? spoil(whole, random) : whole;
}

function makeProof(random: Random): Buffer {
  const text = random.pick([
    'n,,n=,r=abcdefghijklmnopqrstuvwx',
    'y,,n=,r=abc',
    'p=tls-server-end-point,,n=,r=abc',
    'n,a=admin,n=,r=abc',
    'c=biws,r=abc,p=AAAA',
    'n,,n=,r=',
    ...nastyTexts,
  ]);
  if (random.chance(0.5)) return saslInitialResponse(random.pick(['SCRAM-SHA-256', 'SCRAM-SHA-256-PLUS', '']), text);
  return encodeMessage('p', Buffer.from(text), Buffer.from(random.chance(0.5) ? '\0' : ''));
}

function spoil(bytes: Buffer, random: Random): Buffer {
  const spoilt = Buffer.from(bytes);
  switch (random.below(4)) {
    case 0:
      return spoilt.subarray(0, random.below(spoilt.length));
    case 1:
      spoilt.writeInt32BE(random.pick([0, 4, 7, 8, -1, 2 ** 31 - 1, 10_001, 9_999]), 0);
      return spoilt;
    case 2:
      return Buffer.from(Array.from({ length: random.between(1, 300) }, () => random.below(256)));
    default:
      for (let flips = random.between(1, 4); flips > 0; flips--)
        spoilt[random.below(spoilt.length)] = random.below(256);
      return spoilt;
  }
}

/** What an answer may begin with: a negotiation, a message of the protocol, a TLS record. */
const beginnings = 'NSREv\x15\x16';

export async function tryOpening(random: Random, target: Target, findings: Findings): Promise<void> {
  const bytes = makeOpening(random, target);
  const example = JSON.stringify(bytes.toString('latin1').slice(0, 400));
  try {
    if (random.chance(0.1) && 'port' in target.address) return await tryTls(random, target.address.port, bytes);
    const client = new WireClient(target, 'none');
    let first = '';
    client.socket.once('data', (chunk: Buffer) => {
      first = String.fromCharCode(chunk[0] ?? 0);
    });
    await client.send(random.chance(0.5) ? [bytes] : [bytes.subarray(0, 7), bytes.subarray(7)]);
    await client.end();
    if (first !== '' && !beginnings.includes(first))
      findings.add(`an answer begins with ${first.charCodeAt(0)}`, example);
  } catch (error) {
    findings.add(`an opening: ${error}`, example);
  }
}

/** Bytes inside of TLS without a negotiation before it. */
async function tryTls(random: Random, port: number, bytes: Buffer): Promise<void> {
  const protocols = random.pick([['postgresql'], ['http/1.1'], undefined]);
  const socket = connectTls({
    host: '127.0.0.1',
    port,
    rejectUnauthorized: false,
    servername: random.pick(['ep-a.localhost', 'x'.repeat(60), 'ep-a-pooler.local.localhost']),
    ...(protocols === undefined ? {} : { ALPNProtocols: protocols }),
  });
  await new Promise<void>((resolve, reject) => {
    const late = setTimeout(() => reject(new Hang('no end of a connection over TLS')), hangMs);
    socket.on('error', () => {});
    socket.on('close', () => {
      clearTimeout(late);
      resolve();
    });
    socket.on('secureConnect', () => socket.end(bytes));
    socket.resume();
  });
}
