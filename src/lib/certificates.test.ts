import { X509Certificate } from 'node:crypto';
import { mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkServerIdentity } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type CertificateOptions, ensureCertificates } from './certificates.ts';

const dayMs = 86_400_000;
const start = Date.parse('2026-11-15T00:00:00Z');
let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'catnap-tls-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

function ensure(changes: Partial<CertificateOptions> & { days?: number } = {}) {
  const { days = 0, ...rest } = changes;
  const clock = { now: () => new Date(start + days * dayMs) };
  return ensureCertificates({ directory, domain: 'db.example.com', region: 'local', clock, ...rest });
}

describe('ensureCertificates', () => {
  it('makes an authority and a server certificate that names every host', async () => {
    const made = await ensure();
    const leaf = new X509Certificate(made.cert);
    const authority = new X509Certificate(await readFile(made.caPath));
    expect(authority.ca).toBe(true);
    expect(leaf.ca).toBe(false);
    expect(leaf.checkIssued(authority) && leaf.verify(authority.publicKey)).toBe(true);
    expect(made.cert.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
    expect(made.notAfter).toEqual(new Date(leaf.validTo));
    const object = leaf.toLegacyObject();
    for (const host of ['ep-a.local.db.example.com', 'ep-a.db.example.com', 'local.db.example.com', 'db.example.com']) {
      expect(checkServerIdentity(host, object), host).toBeUndefined();
    }
    for (const host of ['localhost', '127.0.0.1', '::1'])
      expect(checkServerIdentity(host, object), host).toBeUndefined();
    expect(checkServerIdentity('example.com', object)).toBeInstanceOf(Error);
  });

  it('keeps private keys to their owner and leaves no scratch files', async () => {
    await ensure();
    const mode = async (...path: string[]) => (await stat(join(directory, ...path))).mode & 0o777;
    expect(await mode('server.pem')).toBe(0o600);
    expect(await mode('ca', 'ca.key')).toBe(0o600);
    expect(await mode('ca', 'ca.crt')).toBe(0o644);
    expect((await readdir(directory)).sort()).toEqual(['ca', 'server.pem']);
  });

  it('reuses what is there', async () => {
    const first = await ensure();
    expect(await ensure({ days: 300 })).toEqual(first);
  });

  it('issues anew, from the same authority, near the end or for other names', async () => {
    const first = await ensure();
    const authority = await readFile(first.caPath, 'utf8');
    const renewed = await ensure({ days: 397 - 29 });
    expect(renewed.key).not.toBe(first.key);
    expect(renewed.notAfter.getTime()).toBe(start + (2 * 397 - 29) * dayMs);
    const renamed = await ensure({ days: 397 - 29, domain: 'other.example.com' });
    expect(renamed.cert).not.toBe(renewed.cert);
    expect(await readFile(renamed.caPath, 'utf8')).toBe(authority);
  });

  it('replaces a server certificate that cannot be read or is another authority’s', async () => {
    const first = await ensure();
    await writeFile(join(directory, 'server.pem'), 'rubbish');
    const second = await ensure();
    expect(second.cert).not.toBe(first.cert);
    await rename(join(directory, 'ca'), join(directory, 'old'));
    const third = await ensure();
    const authority = new X509Certificate(await readFile(third.caPath));
    expect(new X509Certificate(third.cert).verify(authority.publicKey)).toBe(true);
  });

  it('needs the authority’s key only to issue', async () => {
    const first = await ensure();
    await rm(join(directory, 'ca', 'ca.key'));
    expect(await ensure()).toEqual(first);
    await expect(ensure({ days: 390 })).rejects.toThrow(/ca\.key is missing/);
  });

  it('says what to do when the authority has expired', async () => {
    await ensure();
    await expect(ensure({ days: 3651 })).rejects.toThrow(/has expired; remove that directory/);
  });

  it('can be called by several at once, who then share one authority', async () => {
    const all = await Promise.all([ensure(), ensure(), ensure()]);
    const authority = new X509Certificate(await readFile(join(directory, 'ca', 'ca.crt')));
    for (const { cert } of all) expect(new X509Certificate(cert).verify(authority.publicKey)).toBe(true);
    expect((await readdir(directory)).sort()).toEqual(['ca', 'server.pem']);
  });

  it('manages with a domain of one label that is also a name of its own', async () => {
    const made = await ensure({ domain: 'localhost' });
    expect(await ensure({ domain: 'localhost' })).toEqual(made);
  });
});
