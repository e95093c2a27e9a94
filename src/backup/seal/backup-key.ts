/**
 * The key that opens a backup. It is the one thing that must be kept apart from the machine: everything else, the key
 * of the system database's secrets included, is in the store, sealed with it. As a file it is one line of text, which
 * `openssl` takes as a password; all keys in use are derived from that line.
 */
import { createHmac, pbkdf2, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';

const derive = promisify(pbkdf2);

/** 256 bits: nobody guesses it, whatever the number of rounds. */
const keyBytes = 32;
const linePattern = /^[A-Za-z0-9_-]{43}$/;
/** What `openssl enc -pbkdf2` does unless it is told otherwise. */
const rounds = 10_000;

export interface BackupKey {
  /** Recognises the key without giving anything of it away; it is in the store, in the clear. */
  readonly id: string;
  /** For HMAC-SHA256. */
  readonly authentication: Buffer;
  /** Key and initialisation vector for AES-256-CBC, as `openssl enc -pbkdf2` derives them from password and salt. */
  cipher(salt: Uint8Array): Promise<{ readonly key: Buffer; readonly iv: Buffer }>;
}

export function newBackupKeyLine(): string {
  return randomBytes(keyBytes).toString('base64url');
}

/** `line` may end in a newline, as it does in its file. */
export function parseBackupKey(line: string): BackupKey {
  const text = line.trim();
  if (!linePattern.test(text)) throw new Error('not a backup key: it is one line of 43 letters, digits, - and _');
  const purpose = (name: string) => createHmac('sha256', text).update(name).digest();
  return {
    id: purpose('catnap backup key id').toString('hex').slice(0, 16),
    authentication: purpose('catnap backup authentication'),
    cipher: async (salt) => {
      const bytes = await derive(text, salt, rounds, 48, 'sha256');
      return { key: bytes.subarray(0, 32), iv: bytes.subarray(32) };
    },
  };
}
