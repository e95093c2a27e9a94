/** Passwords: argon2id, and the same work for an account that is not there as for one that is. */
import { hash, verify } from '@node-rs/argon2';
import { known } from '../http/errors.ts';

export const passwordLengthMin = 8;
/** That of the original, where longer ones would be cut off without a word. */
export const passwordLengthMax = 70;

/** OWASP's first choice for argon2id; about 30 ms of one core. */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

export function hashPassword(password: string): Promise<string> {
  return hash(password, cost);
}

/** Made once: a password that nobody has, so that checking against it takes as long and always fails. */
const nobodysHash = hashPassword(`nobody ${Math.random()}`);

export async function isPassword(passwordHash: string | null, password: string): Promise<boolean> {
  const isRight = await verify(passwordHash ?? (await nobodysHash), password);
  return isRight && passwordHash !== null;
}

/** For what people choose; the server API may set shorter ones. */
export function requireGoodPassword(password: string): void {
  if (password.length < passwordLengthMin) {
    throw known('PASSWORD_TOO_SHORT', `The password must have at least ${passwordLengthMin} characters.`, {
      min_length: passwordLengthMin,
    });
  }
  if (password.length > passwordLengthMax) {
    throw known('PASSWORD_TOO_LONG', `The password must have at most ${passwordLengthMax} characters.`, {
      maxLength: passwordLengthMax,
    });
  }
}
