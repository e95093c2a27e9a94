import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { buildVerifier, deriveKeys, parseVerifier, type ScramVerifier } from '../../lib/scram-verifier.ts';
import {
  finishServerExchange,
  offeredMechanisms,
  parseClientFirst,
  proveToServer,
  scramMechanism,
  scramPlusMechanism,
  startClientExchange,
  startServerExchange,
} from './scram.ts';
import { ProtocolError } from './wire.ts';

function verifierOf(password: string, salt?: Buffer, iterations?: number): ScramVerifier {
  const verifier = parseVerifier(buildVerifier(password, salt, iterations));
  if (!verifier) throw new Error('no verifier');
  return verifier;
}

/** RFC 7677 section 3. */
const rfc = {
  clientNonce: 'rOprNGfwEbeRWgbNEkqO',
  serverNonce: '%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0',
  clientFirst: 'n,,n=user,r=rOprNGfwEbeRWgbNEkqO',
  serverFirst: 'r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096',
  clientFinal:
    'c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=',
  serverFinal: 'v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=',
};
const rfcSalt = Buffer.from('W22ZaJ0SNY7soEsUEjb6gQ==', 'base64');

const plain = [scramMechanism];
const both = [scramPlusMechanism, scramMechanism];

describe('the example of RFC 7677', () => {
  const verifier = verifierOf('pencil', rfcSalt);

  it('comes out on the server side, with the key of the client', async () => {
    const first = parseClientFirst(rfc.clientFirst, scramMechanism, plain);
    const exchange = startServerExchange(first, verifier, rfc.serverNonce);
    expect(exchange.serverFirst).toBe(rfc.serverFirst);
    const proven = finishServerExchange(exchange, rfc.clientFinal, null);
    expect(proven?.serverFinal).toBe(rfc.serverFinal);
    expect(proven?.keys).toEqual(await deriveKeys('pencil', rfcSalt, 4096));
  });

  it('comes out on the client side, from keys alone', async () => {
    const keys = await deriveKeys('pencil', rfcSalt, 4096);
    const exchange = { nonce: rfc.clientNonce, bare: 'n=user,r=rOprNGfwEbeRWgbNEkqO', first: rfc.clientFirst };
    expect(proveToServer(exchange, rfc.serverFirst, keys, verifier)).toEqual({
      final: rfc.clientFinal,
      expectedServerFinal: rfc.serverFinal,
    });
  });

  it('fails for a verifier of another password', () => {
    const first = parseClientFirst(rfc.clientFirst, scramMechanism, plain);
    const exchange = startServerExchange(first, verifierOf('pencils', rfcSalt), rfc.serverNonce);
    expect(finishServerExchange(exchange, rfc.clientFinal, null)).toBeNull();
  });
});

describe('the channel binding flag of a client', () => {
  const first = (flag: string) => `${flag},,n=,r=abc`;
  it.each([
    ['n', scramMechanism, plain],
    ['y', scramMechanism, plain],
    ['n', scramMechanism, both],
    ['p=tls-server-end-point', scramPlusMechanism, both],
  ])('is accepted: %s with %s', (flag, mechanism, offered) => {
    expect(parseClientFirst(first(flag), mechanism, offered).nonce).toBe('abc');
  });

  it.each([
    ['y though PLUS was offered (somebody removed it)', 'y', scramMechanism, both],
    ['PLUS though it was not offered', 'p=tls-server-end-point', scramPlusMechanism, plain],
    ['PLUS without binding', 'n', scramPlusMechanism, both],
    ['PLUS with y', 'y', scramPlusMechanism, both],
    ['binding without PLUS', 'p=tls-server-end-point', scramMechanism, both],
    ['another binding', 'p=tls-unique', scramPlusMechanism, both],
    ['another mechanism', 'n', 'SCRAM-SHA-1', both],
  ])('is refused: %s', (_name, flag, mechanism, offered) => {
    expect(() => parseClientFirst(first(flag), mechanism, offered)).toThrow(ProtocolError);
  });

  it.each(['', 'n,,', 'n,a=admin,n=,r=abc', 'n,,m=x,n=,r=abc', 'n,,n=,r=', 'n,,n=,r=a b', 'n,,n=,r=é', 'x,,n=,r=abc'])(
    'is refused: %j',
    (text) => {
      expect(() => parseClientFirst(text, scramMechanism, plain)).toThrow(ProtocolError);
    },
  );

  it('is checked against our certificate in the final message', async () => {
    const binding = Buffer.from('hash of the certificate');
    const verifier = verifierOf('x', rfcSalt, 1);
    const keys = await deriveKeys('x', rfcSalt, 1);
    const bare = 'n=,r=abc';
    const clientFirst = parseClientFirst(
      `p=tls-server-end-point,,${bare}`,
      scramPlusMechanism,
      offeredMechanisms(binding),
    );
    const exchange = startServerExchange(clientFirst, verifier);
    const finalFor = (bound: Buffer) => {
      const proof = proveToServer({ nonce: 'abc', bare, first: '' }, exchange.serverFirst, keys, verifier);
      const cbind = Buffer.concat([Buffer.from('p=tls-server-end-point,,'), bound]).toString('base64');
      return proof?.final.replace('c=biws', `c=${cbind}`) ?? '';
    };
    expect(() => finishServerExchange(exchange, finalFor(Buffer.from('another')), binding)).toThrow(/channel binding/);
    expect(() => finishServerExchange(exchange, finalFor(Buffer.alloc(0)), binding)).toThrow(/channel binding/);
    // The binding is right here; the proof was made over another text, so it must fail as a wrong password does.
    expect(finishServerExchange(exchange, finalFor(binding), binding)).toBeNull();
  });
});

describe('both sides of ours together', () => {
  it('agree for any password, salt and count, and only then', async () => {
    const cases = fc.asyncProperty(
      fc.string({ unit: 'grapheme', minLength: 1 }),
      fc.uint8Array({ minLength: 1, maxLength: 32 }),
      fc.integer({ min: 1, max: 10 }),
      async (password, saltArray, iterations) => {
        const salt = Buffer.from(saltArray);
        const verifier = verifierOf(password, salt, iterations);
        const login = async (typed: string) => {
          const client = startClientExchange();
          const server = startServerExchange(parseClientFirst(client.first, scramMechanism, plain), verifier);
          const keys = await deriveKeys(typed, salt, iterations);
          const proof = proveToServer(client, server.serverFirst, keys, verifier);
          const proven = finishServerExchange(server, proof?.final ?? '', null);
          if (proven) expect(proven.serverFinal).toBe(proof?.expectedServerFinal);
          return proven?.keys.clientKey.equals(keys.clientKey) ?? false;
        };
        expect(await login(password)).toBe(true);
        expect(await login(`${password}x`)).toBe(false);
      },
    );
    await fc.assert(cases, { numRuns: 50 });
  });

  it('give up politely when the compute has another salt or count', async () => {
    const verifier = verifierOf('x', rfcSalt, 1);
    const keys = await deriveKeys('x', rfcSalt, 1);
    const client = startClientExchange('abc');
    expect(proveToServer(client, 'r=abcdef,s=AAAA,i=1', keys, verifier)).toBeNull();
    expect(proveToServer(client, `r=abcdef,s=${rfcSalt.toString('base64')},i=2`, keys, verifier)).toBeNull();
  });

  it.each(['', 'r=abc,s=AAAA,i=1', 'r=xyzdef,s=AAAA,i=1', 'e=other-error'])(
    'refuse the server message %j',
    async (text) => {
      const keys = await deriveKeys('x', rfcSalt, 1);
      expect(() => proveToServer(startClientExchange('abc'), text, keys, verifierOf('x', rfcSalt, 1))).toThrow(
        ProtocolError,
      );
    },
  );

  it('refuse a final message that was altered', () => {
    const server = startServerExchange(
      parseClientFirst(rfc.clientFirst, scramMechanism, plain),
      verifierOf('pencil', rfcSalt),
      rfc.serverNonce,
    );
    for (const text of [
      '',
      rfc.clientFinal.replace('biws', 'eSws'),
      rfc.clientFinal.replace('k0,', 'k1,'),
      `${rfc.clientFinal},x=1`,
      rfc.clientFinal.slice(0, -4),
    ]) {
      expect(() => finishServerExchange(server, text, null), text).toThrow(ProtocolError);
    }
  });
});
