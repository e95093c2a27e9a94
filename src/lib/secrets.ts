/**
 * Sealing of what must be shown again later (role passwords, stored replies, Catnap's own logins): AES-256-GCM with a
 * key file that lives beside the database, never in it. The context binds a sealed text to its row, so that a text
 * copied into another row does not open.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

const formatVersion = 1;
const nonceBytes = 12;
const tagBytes = 16;

export interface SecretBox {
  seal(text: string, context: string): Buffer;
  open(sealed: Uint8Array, context: string): string;
}

export function createSecretBox(key: Uint8Array): SecretBox {
  if (key.length !== 32) throw new Error('the secret key file must hold 32 bytes');
  return {
    seal(text, context) {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context));
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return Buffer.concat([Buffer.of(formatVersion), nonce, cipher.getAuthTag(), body]);
    },
    open(sealed, context) {
      const bytes = Buffer.from(sealed);
      if (bytes[0] !== formatVersion) throw new Error('a sealed secret has an unknown format');
      const nonce = bytes.subarray(1, 1 + nonceBytes);
      const tag = bytes.subarray(1 + nonceBytes, 1 + nonceBytes + tagBytes);
      const decipher = createDecipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context)).setAuthTag(tag);
      return Buffer.concat([decipher.update(bytes.subarray(1 + nonceBytes + tagBytes)), decipher.final()]).toString(
        'utf8',
      );
    },
  };
}

/** For tokens with so many random bits that a slow hash would add nothing. */
export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
