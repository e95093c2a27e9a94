/** Random texts of the provider: keys, codes. They have so many random bits that a plain hash reveals nothing. */
import { createHmac, randomBytes } from 'node:crypto';

/** Crockford's base 32, lower case: no two characters are easily confused. */
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';
const length = 45;

/** 45 characters of 5 bits each. */
export function newToken(): string {
  return encode(randomBytes(length));
}

export const newKey = (prefix: 'pck' | 'ssk' | 'sak') => `${prefix}_${newToken()}`;

/** A token that can be derived again without being stored: the same parts give the same text. */
export function derivedToken(key: Uint8Array, ...parts: readonly (string | number)[]): string {
  const digest = (round: number) =>
    createHmac('sha256', key)
      .update(JSON.stringify([round, ...parts]))
      .digest();
  return encode(Buffer.concat([digest(0), digest(1)]).subarray(0, length));
}

function encode(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => alphabet[byte & 31]).join('');
}
