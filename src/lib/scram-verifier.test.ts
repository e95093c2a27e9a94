import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { buildVerifier, decodeBase64, deriveKeys, formatVerifier, parseVerifier, saslPrep } from './scram-verifier.ts';

/** Made by Postgres 17.10: `ALTER ROLE … PASSWORD`, then `rolpassword`. Half of them cannot be prepared. */
const fromPostgres: [name: string, password: string, salt: string, storedKey: string, serverKey: string][] = [
  [
    'plain',
    'correct horse',
    '8+lh8yCNLrB9LLQB3GBfKA==',
    'O9Kk8RbAHkYv5r6S/FDxSLy8dx1gc6Qv1E1haKzBBxM=',
    'gFn1h99wPNUYtZrhHqdj8YnjhMUqkSshUd2sXoC+LVo=',
  ],
  [
    'tab',
    'a\tb',
    'Je6axj+8tYpgooJC6APrNQ==',
    'prLRbX2DIhbP1N+FtdKEUmVLNvckJLHUNuEoI0aky48=',
    'xqIYfrwdJv0ze/Kp4PiZpFUniHA8y6yzPN9KKLpGvLA=',
  ],
  [
    'mapped',
    'I\u{ad}X',
    '4PMSDb6IZpPKfUcs3/hDBQ==',
    'uRaOFixsWFuGXRC1q2jrAREyiUScErnJiWVRYlU+6Yw=',
    'G/GN3hiujw/FhXh+9e7A9nPX+O3ERgACJqedN2jk/Ic=',
  ],
  [
    'space',
    'a\u{a0}b',
    '/0s3cGoLTcI8kWFcbo2LaA==',
    'ku3EyCiU6tarflWvU/7yTbqGHH0XvjuiFuRjP//P9vY=',
    'TEDQPJYM8uwYgQtbMAUuQeKcx1yjRvIOgIyhUYT11ZM=',
  ],
  [
    'roman',
    '\u{2168}',
    '1BZeHAqz3Pasn3iVyXb4Pg==',
    'ayaKQ5hR9vIZ4chydoclcK3Ms4cCASUCJoRLIKCaR6k=',
    'KVaxOlFyRMeQHgdm1Uyic/i/2sKBMSRI9c+5XctNmr8=',
  ],
  [
    'ligature',
    '\u{fb01}x',
    'ZpkxqGOvUleCB31oRJ3hrQ==',
    '3qzMlsXQwxBTdwEcFFsDZL+hbaVXDMQrQ7Ms3zgJ4pk=',
    'JF7lcG7PK8DC+3Vcmm0z//EbaDD0VeJ5xm3sURs4wP4=',
  ],
  [
    'combining',
    'e\u{301}',
    'oT3I+jDtHrNPxWWUn6PWPw==',
    'bPnDaIcBZza+r9wwf/Welu/icWQmZ9no61eGTGDVX6s=',
    'C0ph58NWLXu5AA9hKTn+VeRqK/A2WdHD88FOTSjfDUI=',
  ],
  [
    'rtl',
    '\u{627}1\u{628}',
    'b//OhNi/Mm3EpIpBnom1+Q==',
    '995Wr9xa/caxRpnFQ9JNon1J6KZ6IlSu4hbXQy8sGYo=',
    'GNyPfRhKmy4JlQd536ShhL9NrRFzv5eyfzvnfBIYpA4=',
  ],
  [
    'rtl broken',
    '\u{627}1',
    '57vlTpSZCPzR1XSgR8Jq/w==',
    '7yaETwBKSQsf4znVBviUh0LGZcYhcpM+BrTOu+XyurE=',
    'uiJ2iJacHKrQRGphCw6G4pvV1OalYeO4ZZ0CRAiWjvs=',
  ],
  [
    'unassigned',
    'e\u{301}\u{1f600}',
    '1kjgiXKdBJEKevwu4YnAEA==',
    '5aR8VB+WAnaMnTF2XfEaR+QD8M9+mw460+KaXxQX5m0=',
    'myFiRqEzyHUHkd1l5Ny78zNzo3J7uoqeD3X13xs5ovc=',
  ],
  [
    'control',
    '\u{e9}\u0007',
    '5Lh5m7pEDv8Zq1PRUwlDSw==',
    'pf3CVYYphVCglq6Z/AP9HBH2oCEGUr7V4VrpjReKHoQ=',
    'eaSqxu1HVGtm0WjCVxLrcQStxXqQIrYrJ/R3sRhZOtY=',
  ],
  [
    'later digit',
    '\u{fb01}\u{1f101}',
    'hSZMptkRpovhJi1BaKwHmA==',
    '04N7q4Urp+BX0YuD8wXY/3q93WreYwp0ZrOzFLJoYPg=',
    'IiNIloRb8/EXBRpaxeMRY6toVOo67N1OLv+YjIPEsCM=',
  ],
];

describe('verifiers', () => {
  it.each(fromPostgres)('are those of Postgres: %s', (_name, password, salt, storedKey, serverKey) => {
    const text = `SCRAM-SHA-256$4096:${salt}$${storedKey}:${serverKey}`;
    expect(buildVerifier(password, Buffer.from(salt, 'base64'))).toBe(text);
    expect(parseVerifier(text)?.iterations).toBe(4096);
  });

  it('have a salt of their own and 4096 iterations unless told otherwise', () => {
    const verifiers = [buildVerifier('x'), buildVerifier('x')].map(parseVerifier);
    expect(verifiers.map((verifier) => [verifier?.iterations, verifier?.salt.length])).toEqual([
      [4096, 16],
      [4096, 16],
    ]);
    expect(verifiers[0]?.salt).not.toEqual(verifiers[1]?.salt);
  });

  it('keep their text through parse and format', () => {
    const text = buildVerifier('x', Buffer.from('0123456789abcdef'), 2);
    const verifier = parseVerifier(text);
    expect(verifier && formatVerifier(verifier)).toBe(text);
  });

  const good = buildVerifier('x', Buffer.from('0123456789abcdef'), 2);
  it.each([
    '',
    'md5d41d8cd98f00b204e9800998ecf8427e',
    good.replace('256$2:', '256$0:'),
    good.replace('256$2:', '256$99999999999:'),
    good.replace('256$2:', '256$-1:'),
    good.replace('256$2', '1$2'),
    `${good}=`,
    ` ${good}`,
    good.slice(0, -4),
    good.replace(/:[^:]*$/, ':AAAA'),
    good.replace('MDEy', '!!!!'),
  ])('refuse %j', (text) => {
    expect(parseVerifier(text)).toBeNull();
  });

  it('parse anything without throwing', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => parseVerifier(text) === null));
  });
});

describe('deriveKeys', () => {
  it('gives the keys that the verifier holds, for text and for its bytes', async () => {
    const verifier = parseVerifier(buildVerifier('e\u0301'));
    if (!verifier) throw new Error('no verifier');
    for (const password of ['e\u0301', Buffer.from('e\u0301'), 'é']) {
      const keys = await deriveKeys(password, verifier.salt, verifier.iterations);
      expect(keys.storedKey).toEqual(verifier.storedKey);
      expect(keys.serverKey).toEqual(verifier.serverKey);
    }
  });

  it('uses bytes that are not UTF-8 as they are', async () => {
    const salt = Buffer.from('salt');
    const raw = await deriveKeys(Buffer.from([0xff, 0x41]), salt, 1);
    const replaced = await deriveKeys('\ufffdA', salt, 1);
    expect(raw.storedKey).not.toEqual(replaced.storedKey);
  });
});

describe('saslPrep', () => {
  // RFC 4013 section 3, as far as Postgres follows it: plain ASCII is never touched.
  it.each([
    ['I\u00adX', 'IX'],
    ['user', 'user'],
    ['USER', 'USER'],
    ['\u00aa', 'a'],
    ['\u2168', 'IX'],
    ['\u0007', '\u0007'],
    ['\u0627\u0031', null],
    ['\u00ad', null],
  ])('%j becomes %j', (text, prepared) => {
    expect(saslPrep(text)).toBe(prepared);
  });

  it('leaves what it prepared unchanged when asked again', () => {
    const prepared = fc
      .string({ unit: 'grapheme' })
      .map(saslPrep)
      .filter((text) => text !== null);
    fc.assert(fc.property(prepared, (text) => (saslPrep(text) ?? text) === text));
  });
});

describe('decodeBase64', () => {
  it.each(['', 'A', 'AA=', 'AA==x', 'AB==', ' AAAA', 'AA_A'])('refuses %j', (text) => {
    expect(decodeBase64(text)).toBeNull();
  });
});
