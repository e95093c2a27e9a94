import { createHash, X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { endPointHash } from './tls.ts';

const signedWithSha384 = `-----BEGIN CERTIFICATE-----
MIIBbzCCARWgAwIBAgIUOYA5J3Zq7cTwfhHoowKn4vBucJswCgYIKoZIzj0EAwMw
DDEKMAgGA1UEAwwBeDAgFw0yNjExMTUwNDE4MDZaGA8yMTI2MTAyMjA0MTgwNlow
DDEKMAgGA1UEAwwBeDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABGMKss53QO7j
pSeWtVJsa3vswF9PK4/ilLwkensi3k+DJ1S9NXxg5WDGi3NJGo5aeKy+OGYxMJfm
PQxgJBzk3/mjUzBRMB0GA1UdDgQWBBQkaWKG08HxoTIxB2vnSiMyxIeutDAfBgNV
HSMEGDAWgBQkaWKG08HxoTIxB2vnSiMyxIeutDAPBgNVHRMBAf8EBTADAQH/MAoG
CCqGSM49BAMDA0gAMEUCIBNMhTUVdKApPTVxbDZfqhaU7KG/k10U+yFuLdHPuE5I
AiEA5BngdnRtVqAPG27yuD0DymNFlH9s700ffMX1Cmnfahg=
-----END CERTIFICATE-----
`;

const signedWithEd25519 = `-----BEGIN CERTIFICATE-----
MIIBLjCB4aADAgECAhRU5KfadgRyZArjiPE/0L1C1AjgSTAFBgMrZXAwDDEKMAgG
A1UEAwwBeDAgFw0yNjExMTUwNDE4MDZaGA8yMTI2MTAyMjA0MTgwNlowDDEKMAgG
A1UEAwwBeDAqMAUGAytlcAMhAGgEa+z+7LV0e5uHNFDN6F4mSg0lNRLQUYz1RvMW
ex7io1MwUTAdBgNVHQ4EFgQUQ6UTyZWv64+IemdQ9OGNsi6+B2QwHwYDVR0jBBgw
FoAUQ6UTyZWv64+IemdQ9OGNsi6+B2QwDwYDVR0TAQH/BAUwAwEB/zAFBgMrZXAD
QQAAUAI1+fj0WNkBppphDDqyqSN8Xa427d6sjC9BDl/cItAF04iBxgeE+Z3FMyPK
uP8/o+VjTkvzVwvyI5wa52cK
-----END CERTIFICATE-----
`;

describe('endPointHash', () => {
  it('uses the digest of the certificate’s signature', () => {
    const der = new X509Certificate(signedWithSha384).raw;
    expect(endPointHash(signedWithSha384)).toEqual(createHash('sha384').update(der).digest());
  });

  it('is of the first certificate of a chain', () => {
    expect(endPointHash(signedWithSha384 + signedWithEd25519)).toEqual(endPointHash(signedWithSha384));
  });

  it('is null where the signature names no digest', () => {
    expect(endPointHash(signedWithEd25519)).toBeNull();
  });
});
