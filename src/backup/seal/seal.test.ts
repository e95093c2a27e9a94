import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isInstalled } from '../../../test/helpers/tools.ts';
import { newBackupKeyLine, parseBackupKey } from './backup-key.ts';
import { open, openDocument, SealBrokenError, seal, sealDocument } from './seal.ts';

const run = promisify(execFile);
const line = newBackupKeyLine();
const key = parseBackupKey(`${line}\n`);
const name = 'projects/p/h/log/000000010000000000000001.gz.enc';

const sealed = async (plain: Uint8Array) => buffer(await seal(key, name, Readable.from([plain])));
const opened = (bytes: Uint8Array, as = name, by = key) => buffer(open(by, as, inPieces(bytes)));

/** The borders of pieces fall on every kind of byte. */
function inPieces(bytes: Uint8Array, size = 7_919): Readable {
  const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
    bytes.subarray(at * size, (at + 1) * size),
  );
  return Readable.from(pieces);
}

describe('a sealed object', () => {
  test.each([0, 1, 15, 16, 17, 100_000, 3_000_000])('of %d bytes opens to what was sealed', async (size) => {
    const plain = randomBytes(size);
    const bytes = await sealed(plain);
    expect((await opened(bytes)).equals(plain)).toBe(true);
    expect((await buffer(open(key, name, inPieces(bytes, size > 1_000 ? 40_000 : 1)))).equals(plain)).toBe(true);
  });

  test('looks different each time, and shows nothing of its contents', async () => {
    const plain = Buffer.from('row of a table '.repeat(1_000));
    const [first, second] = [await sealed(plain), await sealed(plain)];
    expect(first.equals(second)).toBe(false);
    expect(first.includes('row')).toBe(false);
  });

  test.each([
    ['its first byte', (bytes: Buffer) => flip(bytes, 0)],
    ['its salt', (bytes: Buffer) => flip(bytes, 9)],
    ['its middle', (bytes: Buffer) => flip(bytes, bytes.length >> 1)],
    ['its last block', (bytes: Buffer) => flip(bytes, bytes.length - 33)],
    ['its proof', (bytes: Buffer) => flip(bytes, bytes.length - 1)],
    ['its end, which is gone', (bytes: Buffer) => bytes.subarray(0, -16)],
    ['everything, which is gone', () => Buffer.alloc(0)],
    ['its end, which is longer', (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc(16)])],
  ])('is refused if somebody has changed %s', async (_what, change) => {
    const bytes = change(await sealed(randomBytes(200_000)));
    await expect(opened(bytes)).rejects.toThrow(SealBrokenError);
  });

  test('is refused under another name and by another key', async () => {
    const bytes = await sealed(randomBytes(100));
    await expect(opened(bytes, name.replace('1.gz', '2.gz'))).rejects.toThrow(SealBrokenError);
    await expect(opened(bytes, name, parseBackupKey(newBackupKeyLine()))).rejects.toThrow(SealBrokenError);
  });

  test('ends with the failure of what was to be sealed', async () => {
    const failing = new Readable({ read: () => {} });
    const result = buffer(await seal(key, name, failing));
    failing.destroy(new Error('the disk is gone'));
    await expect(result).rejects.toThrow('the disk is gone');
  });

  test('ends with the failure of the store that it is read from', async () => {
    const failing = new Readable({ read: () => {} });
    const result = buffer(open(key, name, failing));
    failing.push(randomBytes(1_000));
    failing.destroy(new Error('the network is gone'));
    await expect(result).rejects.toThrow(/the network is gone|does not match/);
  });
});

describe('a sealed document', () => {
  test('opens to what was sealed', async () => {
    const document = { a: [1, 'ü'], b: null };
    expect(await openDocument(key, name, await sealDocument(key, name, document))).toEqual(document);
  });

  test('is not decrypted unless its proof holds', async () => {
    const bytes = await sealDocument(key, name, { a: 1 });
    await expect(openDocument(key, name, flip(bytes, 20))).rejects.toThrow(SealBrokenError);
    await expect(openDocument(key, `${name}x`, bytes)).rejects.toThrow(SealBrokenError);
    await expect(openDocument(key, name, bytes.subarray(0, 10))).rejects.toThrow(SealBrokenError);
  });
});

describe('a backup key', () => {
  test.each(['', 'short', `${line}x`, line.replace(/./, '+'), `${line}\n${line}`])('%j is none', (text) => {
    expect(() => parseBackupKey(text)).toThrow(/not a backup key/);
  });

  test('is recognised by an id that differs from key to key', () => {
    expect(parseBackupKey(line).id).toBe(key.id);
    expect(parseBackupKey(newBackupKeyLine()).id).not.toBe(key.id);
    expect(key.id).toMatch(/^[0-9a-f]{16}$/);
  });
});

describe.runIf(isInstalled('openssl'))('openssl', () => {
  let folder: string;
  const shell = async (script: string) =>
    (await run('bash', ['-euo', 'pipefail', '-c', script], { cwd: folder })).stdout;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'cn-seal-'));
    await writeFile(join(folder, 'backup.key'), `${line}\n`);
  });

  afterAll(() => rm(folder, { recursive: true }));

  test('opens an object with the key file, and can check its proof', async () => {
    const plain = Buffer.from('plain text\n'.repeat(50_000));
    await writeFile(join(folder, 'object'), await sealed(plain));
    await writeFile(join(folder, 'plain'), plain);
    await shell(
      'head -c -32 object | openssl enc -d -aes-256-cbc -pbkdf2 -pass file:backup.key | gunzip | cmp - plain',
    );
    const derived = `printf 'catnap backup authentication' | openssl dgst -sha256 -hmac "$(cat backup.key)" | sed 's/.*= //'`;
    const proof = await shell(
      `{ echo ${name}; head -c -32 object; } | openssl dgst -sha256 -mac HMAC -macopt hexkey:$(${derived})`,
    );
    const found = await shell(`tail -c 32 object | od -An -v -tx1 | tr -d ' \\n'`);
    expect(proof.trim().replace(/.*= /, '')).toBe(found);
  });
});

function flip(bytes: Buffer, at: number): Buffer {
  const changed = Buffer.from(bytes);
  changed[at] = (changed[at] ?? 0) ^ 1;
  return changed;
}
