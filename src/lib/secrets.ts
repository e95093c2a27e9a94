/**
 * Sealing of what must be shown again later (role passwords, stored replies, Catnap's own logins): AES-256-GCM with a
 * key file that lives beside the database, never in it. The context binds a sealed text to its row, so that a text
 * copied into another row does not open.
 *
 * A findable secret has a mark before it that is the same for the same text, so that its row can be looked up by the
 * text with an index. The mark is keyed: without the key file nobody can tell what it stands for. It is only for texts
 * that Catnap made up itself, which nobody can guess.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto';

const plainFormat = 1;
const findableFormat = 2;
const nonceBytes = 12;
const tagBytes = 16;
const markBytes = 16;

export interface SecretBox {
  seal(text: string, context: string): Buffer;
  /** As `seal`, with the mark of the text. */
  sealFindable(text: string, context: string): Buffer;
  markOf(text: string): Buffer;
  open(sealed: Uint8Array, context: string): string;
}

export function createSecretBox(key: Uint8Array): SecretBox {
  if (key.length !== 32) throw new Error('the secret key file must hold 32 bytes');
  const markKey = Buffer.from(hkdfSync('sha256', key, '', 'catnap mark of a secret', 32));
  const encrypt = (text: string, context: string) => {
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context));
    const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), body]);
  };
  const markOf = (text: string) => createHmac('sha256', markKey).update(text).digest().subarray(0, markBytes);
  return {
    seal: (text, context) => Buffer.concat([Buffer.of(plainFormat), encrypt(text, context)]),
    sealFindable: (text, context) => Buffer.concat([Buffer.of(findableFormat), markOf(text), encrypt(text, context)]),
    markOf,
    open(sealed, context) {
      const bytes = encryptedPart(Buffer.from(sealed));
      const tagEnd = nonceBytes + tagBytes;
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, nonceBytes))
        .setAAD(Buffer.from(context))
        .setAuthTag(bytes.subarray(nonceBytes, tagEnd));
      return Buffer.concat([decipher.update(bytes.subarray(tagEnd)), decipher.final()]).toString('utf8');
    },
  };
}

export function isFindable(sealed: Uint8Array): boolean {
  return sealed[0] === findableFormat;
}

function encryptedPart(sealed: Buffer): Buffer {
  if (isFindable(sealed)) return sealed.subarray(1 + markBytes);
  if (sealed[0] === plainFormat) return sealed.subarray(1);
  throw new Error('a sealed secret has an unknown format');
}

/** For tokens with so many random bits that a slow hash would add nothing. */
export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
