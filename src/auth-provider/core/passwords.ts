/** Passwords: argon2id, with the same work for an account that does not exist as for one that does. */
import { hash, verify } from '@node-rs/argon2';
import { known } from '../http/errors.ts';

export const passwordLengthMin = 8;
/** The limit of the original, which would silently truncate longer ones. */
export const passwordLengthMax = 70;

/** OWASP's first choice for argon2id; about 30 ms of one core. */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

export function hashPassword(password: string): Promise<string> {
  return hash(password, cost);
}

/** The hash of a password that nobody has, so that checking against it takes as long and always fails. */
let nobodysHash: Promise<string> | null = null;

export async function isPassword(passwordHash: string | null, password: string): Promise<boolean> {
  // Made once, not at the start, and for whoever comes first: the time of a check must not tell who exists.
  nobodysHash ??= hashPassword(`nobody ${Math.random()}`);
  const nobodys = await nobodysHash;
  const isRight = await verify(passwordHash ?? nobodys, password);
  return isRight && passwordHash !== null;
}

/** For passwords that people choose; the server API may set shorter ones. */
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
