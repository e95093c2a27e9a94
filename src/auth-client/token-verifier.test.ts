/** Which tokens are accepted, and how often keys are read. */
import { createHmac } from 'node:crypto';
import { exportJWK, exportSPKI, generateKeyPair, type JSONWebKeySet, SignJWT } from 'jose';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { TokenRefused, TokenVerifier } from './token-verifier.ts';

type Pair = Awaited<ReturnType<typeof generateKeyPair>>;
let first: Pair;
let second: Pair;
let sets: Record<string, JSONWebKeySet>;
let reads: string[];
let now: number;
let verifier: TokenVerifier;

const url = 'https://keys.test/a';
const source = { url, audience: null };
const publicKey = async (pair: Pair, kid: string) => ({ ...(await exportJWK(pair.publicKey)), kid });

beforeAll(async () => {
  first = await generateKeyPair('RS256', { extractable: true });
  second = await generateKeyPair('RS256', { extractable: true });
});
beforeEach(async () => {
  now = Date.now();
  reads = [];
  sets = { [url]: { keys: [await publicKey(first, 'first')] } };
  verifier = new TokenVerifier(
    async (from) => {
      reads.push(from);
      const found = sets[from];
      if (found === undefined) throw new Error('nothing there');
      return found;
    },
    () => now,
  );
});

interface Wanted {
  readonly pair?: Pair;
  readonly kid?: string;
  readonly exp?: number | null;
  readonly claims?: Record<string, unknown>;
}

async function sign({ pair = first, kid = 'first', exp = now / 1_000 + 60, claims = {} }: Wanted = {}) {
  const token = new SignJWT({ sub: 'ann', ...claims }).setProtectedHeader({ alg: 'RS256', kid });
  if (exp !== null) token.setExpirationTime(Math.floor(exp));
  return token.sign(pair.privateKey);
}

const refusal = (token: string, of = [source]) => verifier.verify(token, of).catch((thrown: Error) => thrown);

describe('a token', () => {
  test('that the provider has signed gives its claims', async () => {
    expect(await verifier.verify(await sign({ claims: { role: 'x' } }), [source])).toMatchObject({
      sub: 'ann',
      role: 'x',
    });
  });

  test('that another key has signed is not accepted, and nothing more is said', async () => {
    expect(await refusal(await sign({ pair: second }))).toEqual(new TokenRefused('the token is not accepted here'));
    expect(await refusal(await sign(), [])).toEqual(new TokenRefused('the token is not accepted here'));
  });

  test('that was changed is not accepted', async () => {
    const [header, , signature] = (await sign()).split('.');
    const payload = Buffer.from(JSON.stringify({ sub: 'eve', exp: now / 1_000 + 60 })).toString('base64url');
    expect(await refusal(`${header}.${payload}.${signature}`)).toMatchObject({
      message: 'the token is not accepted here',
    });
  });

  test('must not be over, nor without an end', async () => {
    expect(await refusal(await sign({ exp: now / 1_000 - 31 }))).toMatchObject({ message: 'the token has expired' });
    expect(await refusal(await sign({ exp: null }))).toMatchObject({ message: 'the token must have an expiry (exp)' });
  });

  test('must have begun', async () => {
    const early = await sign({ claims: { nbf: Math.floor(now / 1_000) + 60 } });
    expect(await refusal(early)).toMatchObject({ message: 'the token\'s claim "nbf" is not accepted here' });
  });

  test.each([
    ['shop', 'shop', true],
    [['other', 'shop'], 'shop', true],
    ['other', 'shop', false],
    [undefined, 'shop', false],
    ['other', null, true],
  ])('with the audience %s at one that wants %s: %s', async (aud, audience, isAccepted) => {
    const outcome = await verifier
      .verify(await sign({ claims: aud === undefined ? {} : { aud } }), [{ url, audience }])
      .then(() => true)
      .catch((thrown: Error) => thrown.message);
    expect(outcome).toBe(isAccepted || 'the token\'s claim "aud" is not accepted here');
  });

  test('without a signature, or signed with the public key as a secret, is not accepted', async () => {
    const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
    const claims = encode({ sub: 'eve', exp: Math.floor(now / 1_000) + 60 });
    const none = `${encode({ alg: 'none' })}.${claims}.`;
    const body = `${encode({ alg: 'HS256', kid: 'first' })}.${claims}`;
    const secret = await exportSPKI(first.publicKey);
    const confused = `${body}.${createHmac('sha256', secret).update(body).digest('base64url')}`;
    for (const token of [none, confused]) {
      expect(await refusal(token)).toMatchObject({
        message: expect.stringContaining('must be signed with one of RS256'),
      });
    }
    expect(reads).toEqual([]);
  });

  test.each(['', 'x', 'a.b', 'a.b.c', 'a.b.c.d.e'])('that is none (%s) is refused', async (token) => {
    expect(await refusal(token)).toMatchObject({ message: 'the bearer token is not a JWT' });
  });
});

describe('keys', () => {
  test('are read once for many tokens, and again after ten minutes', async () => {
    const token = await sign({ exp: now / 1_000 + 7_200 });
    await Promise.all(Array.from({ length: 20 }, () => verifier.verify(token, [source])));
    now += 9 * 60_000;
    await verifier.verify(token, [source]);
    expect(reads).toHaveLength(1);
    now += 2 * 60_000;
    await verifier.verify(token, [source]);
    expect(reads).toHaveLength(2);
  });

  test('that are new are found, and unknown ones do not make them be read without end', async () => {
    await verifier.verify(await sign(), [source]);
    sets[url] = { keys: [await publicKey(first, 'first'), await publicKey(second, 'second')] };
    const rotated = await sign({ pair: second, kid: 'second' });
    expect(await refusal(rotated)).toBeInstanceOf(TokenRefused);
    now += 10_000;
    expect(await verifier.verify(rotated, [source])).toMatchObject({ sub: 'ann' });
    for (let count = 0; count < 20; count++) await refusal(await sign({ kid: 'unknown' }));
    expect(reads).toHaveLength(2);
  });

  test('that were withdrawn count no longer than they are kept', async () => {
    const token = await sign({ exp: now / 1_000 + 7_200 });
    await verifier.verify(token, [source]);
    sets[url] = { keys: [await publicKey(second, 'second')] };
    now += 11 * 60_000;
    expect(await refusal(token)).toBeInstanceOf(TokenRefused);
  });

  test('of a provider that is away count for an hour', async () => {
    const token = await sign({ exp: now / 1_000 + 7_200 });
    await verifier.verify(token, [source]);
    delete sets[url];
    now += 59 * 60_000;
    expect(await verifier.verify(token, [source])).toMatchObject({ sub: 'ann' });
    now += 2 * 60_000;
    expect(await refusal(token)).toBeInstanceOf(TokenRefused);
  });

  test('of a provider that hangs delay nobody else', async () => {
    const patient = new TokenVerifier(
      (from) => (from === url ? Promise.resolve(sets[url] ?? { keys: [] }) : new Promise(() => {})),
      () => now,
    );
    const hanging = { url: 'https://hangs.test/', audience: null };
    const stuck = patient.verify(await sign({ pair: second }), [hanging]);
    expect(await patient.verify(await sign(), [hanging, source])).toMatchObject({ sub: 'ann' });
    expect(await Promise.race([stuck, Promise.resolve('still waiting')])).toBe('still waiting');
  });

  test('are not asked for again at once where reading them failed', async () => {
    delete sets[url];
    for (let count = 0; count < 5; count++) expect(await refusal(await sign())).toBeInstanceOf(TokenRefused);
    expect(reads).toHaveLength(1);
  });
});
