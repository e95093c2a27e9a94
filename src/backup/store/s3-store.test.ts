/**
 * The store in a bucket, against a server from npm, which is a mock: it takes any secret and replaces what must be new.
 * `CATNAP_TEST_S3` names a real one, as `http://key:secret@host:port`, which is held to those too.
 */
import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import { freePort } from '../../../test/helpers/free-ports.ts';
import { hasS3Mock, spawnS3Mock } from '../../../test/helpers/s3-mock.ts';
import { describeStore, namesIn, readObject } from '../../../test/helpers/store-contract.ts';
import type { S3Access } from '../../lib/backup-settings.ts';
import { openStore } from './open-store.ts';
import { S3Store } from './s3-store.ts';

const real = process.env.CATNAP_TEST_S3;
const bucket = `catnap-${randomUUID()}`;
let server: ChildProcess | undefined;
let folder: string;
let access: S3Access;

const accessTo = (endpoint: string, accessKeyId: string, secretAccessKey: string): S3Access => ({
  endpoint,
  region: 'us-east-1',
  accessKeyId,
  secretAccessKey,
  sessionToken: undefined,
  pathStyle: true,
});

async function start(): Promise<void> {
  folder = await mkdtemp(join(tmpdir(), 'cn-s3-'));
  if (real === undefined) {
    const port = await freePort();
    server = spawnS3Mock(folder, port);
    access = accessTo(`http://127.0.0.1:${port}`, 'S3RVER', 'S3RVER');
  } else {
    const { protocol, host, username, password } = new URL(real);
    access = accessTo(`${protocol}//${host}`, decodeURIComponent(username), decodeURIComponent(password));
  }
  const { accessKeyId, secretAccessKey, endpoint = '' } = access;
  const client = new S3Client({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId, secretAccessKey },
    maxAttempts: 1,
  });
  await eventually(() => client.send(new CreateBucketCommand({ Bucket: bucket })), {
    everyMs: 200,
  });
  client.destroy();
}

const open = (prefix: string, changes: Partial<S3Access> = {}) =>
  new S3Store({ bucket, prefix }, { ...access, ...changes });

describe.runIf(real !== undefined || hasS3Mock)('a bucket', () => {
  beforeAll(start);

  afterAll(async () => {
    server?.kill();
    await rm(folder, { recursive: true, force: true });
  });

  describeStore('a store in a bucket', async () => {
    const store = open('some/prefix');
    return { store, refusesToReplace: real !== undefined, close: async () => store.close() };
  });

  test('two prefixes do not see each other', async () => {
    const [one, other] = [open('one'), open('one-more')];
    await one.put('a', Buffer.from('1'));
    await other.put('a', Buffer.from('2'));
    expect(await namesIn(one)).toEqual(['a']);
    expect((await readObject(other, 'a')).toString()).toBe('2');
    const whole = openStore({ url: `s3://${bucket}/one`, s3: access, bytesPerSecond: undefined, delaySeconds: 1 });
    expect((await readObject(whole, 'a')).toString()).toBe('1');
  });

  test('a reader sees an old or a new object whole, also while it is written', async () => {
    const store = open('whole');
    const versions = ['a', 'b'].map((letter) => Buffer.alloc(6_000_000, letter));
    await store.put('o', versions[0] ?? Buffer.alloc(0));
    for (let round = 1; round <= 5; round += 1) {
      const writing = store.put('o', versions[round % 2] ?? Buffer.alloc(0));
      const read = await Promise.all(Array.from({ length: 4 }, () => readObject(store, 'o')));
      for (const bytes of read) expect(versions.some((version) => version.equals(bytes))).toBe(true);
      await writing;
    }
  });

  test('lists more than one page', async () => {
    const store = open('pages');
    const names = Array.from({ length: real === undefined ? 40 : 1_100 }, (_, at) => `p/${at}`);
    for (let from = 0; from < names.length; from += 20)
      await Promise.all(names.slice(from, from + 20).map((name) => store.put(name, Buffer.from(name))));
    expect(await namesIn(store, 'p/')).toEqual(names.sort());
  });

  test('a bucket that does not exist is said to be so', async () => {
    const store = new S3Store({ bucket: `none-${randomUUID()}`, prefix: '' }, access);
    await expect(store.put('a', Buffer.from('x'))).rejects.toMatchObject({ trouble: 'no_bucket' });
    await expect(namesIn(store)).rejects.toMatchObject({ trouble: 'no_bucket' });
  });

  test('a server that is not there is said to be so', async () => {
    const store = open('x', { endpoint: `http://127.0.0.1:${await freePort()}` });
    await expect(store.put('a', Buffer.from('x'))).rejects.toMatchObject({
      trouble: 'unreachable',
      message: expect.stringContaining('ECONNREFUSED'),
    });
  });

  test.runIf(real !== undefined)('a wrong secret or key is refused, and neither is repeated', async () => {
    for (const wrong of [{ secretAccessKey: 'not-the-secret' }, { accessKeyId: 'nobody' }]) {
      const refused = await open('x', wrong)
        .put('a', Buffer.from('x'))
        .catch((error: Error) => error);
      expect(refused).toMatchObject({ trouble: 'denied' });
      expect(String(refused)).not.toContain(access.secretAccessKey);
    }
  });
});

test('a server that has no room is said to be full, whatever status it has for that', async () => {
  let [status, code] = [507, 'InsufficientStorage'];
  const full = createHttpServer((incoming, outgoing) => {
    incoming.resume().on('end', () => {
      outgoing.writeHead(status, { 'content-type': 'application/xml', connection: 'close' });
      outgoing.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>no</Message></Error>`);
    });
  }).listen(0, '127.0.0.1');
  await once(full, 'listening');
  const { port } = full.address() as AddressInfo;
  const keys = { accessKeyId: 'key', secretAccessKey: 'secret', sessionToken: undefined };
  const place = { endpoint: `http://127.0.0.1:${port}`, region: 'us-east-1', pathStyle: true };
  const store = new S3Store({ bucket: 'any', prefix: '' }, { ...place, ...keys });
  try {
    await expect(store.put('a', Buffer.from('x'))).rejects.toMatchObject({ trouble: 'full' });
    [status, code] = [403, 'QuotaExceeded'];
    await expect(store.put('a', Buffer.from('x'))).rejects.toMatchObject({
      trouble: 'full',
      message: expect.stringMatching(/the store is full; uploads go on by themselves/),
    });
    [status, code] = [403, 'AccessDenied'];
    await expect(store.put('a', Buffer.from('x'))).rejects.toMatchObject({ trouble: 'denied' });
  } finally {
    store.close();
    full.close();
  }
});
