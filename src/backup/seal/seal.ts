/**
 * Sealing of objects, in a form that plain tools can undo. An object is
 *
 *   gzip, then AES-256-CBC in the format of `openssl enc -pbkdf2` ("Salted__", 8 bytes of salt, blocks),
 *   then 32 bytes: HMAC-SHA256 of the object's name, a newline, and everything before these 32 bytes.
 *
 * The name is part of the proof, so an object that is copied to another name does not open. CBC rather than CTR: a salt
 * has 64 bits, and two objects that get the same one must not give each other's contents away.
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { pipeline, Readable, Transform } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { constants, createGunzip, createGzip } from 'node:zlib';
import type { BackupKey } from './backup-key.ts';

type Cipher = ReturnType<typeof createDecipheriv>;

const magic = Buffer.from('Salted__');
const saltBytes = 8;
const headBytes = magic.length + saltBytes;
const proofBytes = 32;
const algorithm = 'aes-256-cbc';

/** Somebody has changed the object, it was cut short, it has another's name, or the key is another one. */
export class SealBrokenError extends Error {
  constructor(name: string) {
    super(`${name} was not written by this installation, or was changed since: its proof does not match`);
    this.name = 'SealBrokenError';
  }
}

/** `plain` compressed, encrypted and proven. A failure of `plain` ends the stream with that failure. */
export async function seal(key: BackupKey, name: string, plain: Readable): Promise<Readable> {
  const salt = randomBytes(saltBytes);
  const { key: cipherKey, iv } = await key.cipher(salt);
  const cipher = createCipheriv(algorithm, cipherKey, iv);
  const proof = startProof(key, name);
  const pass = (bytes: Buffer) => {
    proof.update(bytes);
    return bytes;
  };
  const sealed = new Transform({
    construct(done) {
      this.push(pass(Buffer.concat([magic, salt])));
      done();
    },
    transform: (chunk: Buffer, _encoding, done) => done(null, pass(cipher.update(chunk))),
    flush(done) {
      this.push(pass(cipher.final()));
      done(null, proof.digest());
    },
  });
  // Compression costs most of the time; the fastest level makes log about a tenth larger than the usual one.
  return pipeline(plain, createGzip({ level: constants.Z_BEST_SPEED }), sealed, () => {});
}

/**
 * The plain bytes of a sealed object. The proof is at its end: what the stream has given before is worth nothing if the
 * stream ends with a SealBrokenError.
 */
export function open(key: BackupKey, name: string, sealed: Readable): Readable {
  const proof = startProof(key, name);
  /** What has arrived and is not decrypted yet, because it may be the head or the proof. */
  let held = Buffer.alloc(0);
  let decipher: Cipher | undefined;
  const decrypted = new Transform({
    async transform(chunk: Buffer, _encoding, done) {
      try {
        held = Buffer.concat([held, chunk]);
        if (decipher === undefined && held.length >= headBytes) decipher = await begin();
        const ready = decipher === undefined ? 0 : held.length - proofBytes;
        if (ready > 0) this.push(decipher?.update(take(ready)));
        done();
      } catch (error) {
        done(error as Error);
      }
    },
    flush(done) {
      if (decipher === undefined || held.length !== proofBytes || !timingSafeEqual(held, proof.digest())) {
        return done(new SealBrokenError(name));
      }
      done(null, decipher.final());
    },
  });

  function take(bytes: number): Buffer {
    const taken = held.subarray(0, bytes);
    held = held.subarray(bytes);
    proof.update(taken);
    return taken;
  }

  async function begin(): Promise<Cipher> {
    const head = take(headBytes);
    if (!head.subarray(0, magic.length).equals(magic)) throw new SealBrokenError(name);
    const { key: cipherKey, iv } = await key.cipher(head.subarray(magic.length));
    return createDecipheriv(algorithm, cipherKey, iv);
  }

  return Readable.from(
    explained(
      name,
      pipeline(sealed, decrypted, createGunzip(), () => {}),
    ),
    { objectMode: false },
  );
}

/** Bytes that were changed are often no gzip any more: then that failure comes before the proof is reached. */
async function* explained(name: string, plain: Readable): AsyncIterable<Buffer> {
  try {
    yield* plain;
  } catch (error) {
    throw isNoGzip(error) ? new SealBrokenError(name) : error;
  }
}

const isNoGzip = (error: unknown) => /^Z_/.test((error as NodeJS.ErrnoException).code ?? '');

/** For documents: the whole object is in memory, and nothing is read of it before its proof is checked. */
export async function sealDocument(key: BackupKey, name: string, document: unknown): Promise<Buffer> {
  return buffer(await seal(key, name, Readable.from([Buffer.from(`${JSON.stringify(document, null, 2)}\n`)])));
}

export async function openDocument(key: BackupKey, name: string, sealed: Uint8Array): Promise<unknown> {
  const bytes = Buffer.from(sealed);
  const body = bytes.subarray(0, -proofBytes);
  const expected = startProof(key, name).update(body).digest();
  if (bytes.length < headBytes + proofBytes || !timingSafeEqual(bytes.subarray(-proofBytes), expected)) {
    throw new SealBrokenError(name);
  }
  return JSON.parse((await buffer(open(key, name, Readable.from([bytes])))).toString('utf8'));
}

function startProof(key: BackupKey, name: string) {
  return createHmac('sha256', key.authentication).update(`${name}\n`);
}
