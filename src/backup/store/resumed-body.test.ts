/** Reads from a bucket whose connections are lost in the middle. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ObjectChangedError, StoreError } from './object-store.ts';
import { S3Store } from './s3-store.ts';

interface Asked {
  readonly range: string | undefined;
  readonly ifMatch: string | undefined;
}

const object = randomBytes(1_000_000);
const server = createServer((incoming, outgoing) => answer(incoming, outgoing));
let store: S3Store;
let asked: Asked[];
/** How many bytes each request gets before its connection is lost; all that are left when there is none. */
let cuts: number[];
/** The connection that is lost as soon as the reader has what was sent: earlier, some of it might never arrive. */
let cutting: { readonly until: number; readonly lose: () => void } | null;
let tag: string;
let knowsRanges: boolean;
let beforeCut: () => void;

function answer(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const { range, 'if-match': ifMatch } = incoming.headers;
  asked.push({ range, ifMatch });
  if (ifMatch !== undefined && ifMatch !== tag) {
    outgoing.writeHead(412).end();
    return;
  }
  const at = knowsRanges ? Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1] ?? 0) : 0;
  const rest = object.subarray(at);
  const ranged = at > 0 && { 'content-range': `bytes ${at}-${object.length - 1}/${object.length}` };
  outgoing.writeHead(at > 0 ? 206 : 200, { etag: tag, 'content-length': rest.length, ...ranged });
  const cut = cuts.shift();
  if (cut === undefined) outgoing.end(rest);
  else if (cut === 0) outgoing.destroy();
  else {
    outgoing.write(rest.subarray(0, cut));
    cutting = { until: at + cut, lose: () => outgoing.destroy() };
  }
}

async function read(): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of await store.get('a')) {
    pieces.push(piece);
    bytes += piece.length;
    if (cutting === null || bytes < cutting.until) continue;
    const { lose } = cutting;
    cutting = null;
    beforeCut();
    lose();
  }
  return Buffer.concat(pieces);
}

beforeEach(async () => {
  [asked, cuts, cutting, tag, knowsRanges, beforeCut] = [[], [], null, '"one"', true, () => undefined];
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const keys = { accessKeyId: 'key', secretAccessKey: 'secret', sessionToken: undefined };
  const place = { endpoint: `http://127.0.0.1:${port}`, region: 'us-east-1', pathStyle: true };
  store = new S3Store({ bucket: 'any', prefix: '' }, { ...place, ...keys }, { pauseMs: () => 1 });
});

afterEach(async () => {
  store.close();
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

test('a read goes on where its connection was lost, with the same version of the object', async () => {
  cuts = [300_000, 1, 400_000];
  expect((await read()).equals(object)).toBe(true);
  const later = { ifMatch: '"one"' };
  expect(asked).toEqual([
    { range: undefined, ifMatch: undefined },
    { ...later, range: 'bytes=300000-' },
    { ...later, range: 'bytes=300001-' },
    { ...later, range: 'bytes=700001-' },
  ]);
});

test('an object that was written again meanwhile is not continued with other bytes', async () => {
  cuts = [300_000];
  beforeCut = () => {
    tag = '"two"';
  };
  await expect(read()).rejects.toThrow(ObjectChangedError);
});

test('a store that stays away ends the read, after attempts that are counted', async () => {
  cuts = [300_000, ...Array(100).fill(0)];
  const lost = await read().catch((error: unknown) => error);
  expect(lost).toBeInstanceOf(StoreError);
  expect(lost).toMatchObject({ trouble: 'unreachable' });
  // Six attempts, of which each is repeated by the client library as often as it repeats any request.
  expect(asked.length).toBeGreaterThan(6);
  expect(asked.length).toBeLessThanOrEqual(6 * 4);
});

test('attempts that bring bytes are not counted', async () => {
  cuts = Array(20).fill(20_000);
  expect((await read()).equals(object)).toBe(true);
});

test('a store that knows no ranges is not mistaken for one that has sent the rest', async () => {
  [cuts, knowsRanges] = [[300_000], false];
  await expect(read()).rejects.toMatchObject({
    trouble: 'other',
    message: expect.stringContaining('cannot send a part of a'),
  });
});

test('a reader that goes away asks for nothing more', async () => {
  const body = await store.get('a');
  for await (const _ of body) break;
  expect(body.destroyed).toBe(true);
  expect(asked).toHaveLength(1);
});
