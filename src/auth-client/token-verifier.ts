/**
 * Verifies tokens of third parties by the key sets that they publish. Keys are kept for a while; a key that is not
 * known makes the set be read again, but not more often than every ten seconds. All callers share one reading, and a
 * provider that hangs delays only those who need its keys.
 */
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, errors, type JSONWebKeySet, jwtVerify } from 'jose';

export interface TokenSource {
  readonly url: string;
  /** What the token's `aud` must contain; null takes any. */
  readonly audience: string | null;
}

/** The message is for the caller: it says nothing about the endpoint, unless the signature was right. */
export class TokenRefused extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'TokenRefused';
  }
}

/** Signatures with a public and a private key only: with a shared secret, the public key would be the secret. */
const algorithms = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ');
const clockToleranceSeconds = 30;
const keepMs = 10 * 60_000;
/** How long keys count that cannot be read again. */
const staleMs = 60 * 60_000;
const pauseMs = 10_000;
const setsMax = 1_000;
/** Readings at once; each ends within the fetch's own time. */
const readingsMax = 100;

interface CachedSet {
  keys: JSONWebKeySet | null;
  readAt: number;
  triedAt: number;
  failure: unknown;
  reading: Promise<void> | null;
}

export class TokenVerifier {
  readonly #read: (url: string) => Promise<JSONWebKeySet>;
  readonly #now: () => number;
  readonly #sets = new Map<string, CachedSet>();
  #readings = 0;

  constructor(read: (url: string) => Promise<JSONWebKeySet>, now: () => number = Date.now) {
    this.#read = read;
    this.#now = now;
  }

  /** The claims, if one of the sources has signed the token; else rejects with TokenRefused. */
  async verify(token: string, sources: readonly TokenSource[]): Promise<Record<string, unknown>> {
    this.#requirePlausible(token);
    try {
      // Together: a provider that hangs must not delay the token of another.
      return await Promise.any(sources.map((source) => this.#verifyBy(token, source)));
    } catch (thrown) {
      const reasons: unknown[] = thrown instanceof AggregateError ? thrown.errors : [thrown];
      const telling = reasons.find((reason) => reason instanceof TokenRefused);
      throw telling ?? new TokenRefused('the token is not accepted here', reasons[0]);
    }
  }

  /** What can be said of a token without knowing whom it is shown to. */
  #requirePlausible(token: string): void {
    let algorithm: string | undefined;
    let expiresAt: number | undefined;
    try {
      algorithm = decodeProtectedHeader(token).alg;
      expiresAt = decodeJwt(token).exp;
    } catch (cause) {
      throw new TokenRefused('the bearer token is not a JWT', cause);
    }
    if (algorithm === undefined || !algorithms.includes(algorithm)) {
      throw new TokenRefused(`the token must be signed with one of ${algorithms.join(', ')}`);
    }
    if (typeof expiresAt !== 'number') throw new TokenRefused('the token must have an expiry (exp)');
    if (expiresAt + clockToleranceSeconds <= this.#now() / 1_000) throw new TokenRefused('the token has expired');
  }

  async #verifyBy(token: string, source: TokenSource): Promise<Record<string, unknown>> {
    const known = await this.#keysAt(source.url, false);
    try {
      return await this.#check(token, known, source);
    } catch (thrown) {
      if (!(thrown instanceof errors.JWKSNoMatchingKey)) throw thrown;
      const newest = await this.#keysAt(source.url, true);
      if (newest === known) throw thrown;
      return this.#check(token, newest, source);
    }
  }

  async #check(token: string, keys: JSONWebKeySet, { audience }: TokenSource): Promise<Record<string, unknown>> {
    try {
      const { payload } = await jwtVerify(token, createLocalJWKSet(keys), {
        algorithms,
        requiredClaims: ['exp'],
        clockTolerance: clockToleranceSeconds,
        currentDate: new Date(this.#now()),
        ...(audience !== null && { audience }),
      });
      return payload;
    } catch (thrown) {
      // These come after the signature was found right.
      if (thrown instanceof errors.JWTExpired) throw new TokenRefused('the token has expired', thrown);
      if (thrown instanceof errors.JWTClaimValidationFailed) {
        throw new TokenRefused(`the token's claim "${thrown.claim}" is not accepted here`, thrown);
      }
      throw thrown;
    }
  }

  async #keysAt(url: string, mustBeNew: boolean): Promise<JSONWebKeySet> {
    const set = this.#setOf(url);
    const isOld = set.keys === null || this.#now() - set.readAt > keepMs;
    const mayTry = this.#now() - set.triedAt >= pauseMs;
    if ((isOld || mustBeNew) && (mayTry || set.reading !== null)) {
      set.reading ??= this.#readInto(set, url).finally(() => {
        set.reading = null;
      });
      await set.reading;
    }
    if (set.keys !== null && this.#now() - set.readAt <= staleMs) return set.keys;
    throw new Error('the keys of the provider cannot be read', { cause: set.failure });
  }

  async #readInto(set: CachedSet, url: string): Promise<void> {
    if (this.#readings >= readingsMax) {
      set.failure = new Error('too many key sets are being read');
      return;
    }
    set.triedAt = this.#now();
    this.#readings += 1;
    try {
      set.keys = await this.#read(url);
      set.readAt = this.#now();
      set.failure = null;
    } catch (thrown) {
      set.failure = thrown;
    } finally {
      this.#readings -= 1;
    }
  }

  #setOf(url: string): CachedSet {
    const found = this.#sets.get(url);
    if (found !== undefined) return found;
    const [oldest] = this.#sets.keys();
    if (this.#sets.size >= setsMax && oldest !== undefined) this.#sets.delete(oldest);
    const made = { keys: null, readAt: 0, triedAt: Number.NEGATIVE_INFINITY, failure: null, reading: null };
    this.#sets.set(url, made);
    return made;
  }
}
