/**
 * The installation's own certificate authority and the server certificate that the proxy shows. Made on the first
 * start, kept in one directory, renewed in time; clients that trust the authority keep trusting every renewal.
 */
import { randomBytes, webcrypto, X509Certificate } from 'node:crypto';
import { chmod, mkdir, mkdtemp, open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Extension } from '@peculiar/x509';
import { type Clock, dayMs } from './clock.ts';

export interface Certificates {
  /** Private key of the server certificate, PEM. */
  readonly key: string;
  /** Server certificate, then the authority's, PEM. */
  readonly cert: string;
  /** For clients: `sslrootcert`. */
  readonly caPath: string;
  readonly notAfter: Date;
}

export interface CertificateOptions {
  readonly directory: string;
  readonly domain: string;
  readonly region: string;
  readonly clock: Clock;
}

/** Clients with a slow clock accept a new certificate too. */
const backdateMs = dayMs;
const authorityDays = 3650;
/** Browsers and strict clients accept at most 398. */
const serverDays = 397;
const renewalDays = 30;
const keyAlgorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** Safe to call again at any time, and from several processes at once: it reads, or makes what is missing. */
export async function ensureCertificates(options: CertificateOptions): Promise<Certificates> {
  const { directory, clock } = options;
  await mkdir(directory, { recursive: true, mode: 0o755 });
  const names = serverNames(options.domain, options.region);
  const authority = await ensureAuthority(directory, clock);
  const path = join(directory, 'server.pem');
  const kept = readServer(await readIfThere(path));
  if (kept && isGood(kept, authority, names, clock.now())) return toResult(kept, authority);
  const made = await issueServer(authority, names, clock.now());
  await writeAtomically(path, made, 0o600);
  const server = readServer(made);
  if (!server) throw new Error('BUG: the new server certificate cannot be read');
  return toResult(server, authority);
}

/** Every name that a client may use for this installation. */
export function serverNames(domain: string, region: string): readonly string[] {
  const hostnames = [`*.${region}.${domain}`, `*.${domain}`, `${region}.${domain}`, domain, 'localhost'];
  return [...new Set(hostnames), ...loopbackAddresses];
}

const loopbackAddresses = ['127.0.0.1', '::1'];

interface Authority {
  readonly certificate: X509Certificate;
  readonly pem: string;
  readonly path: string;
  readonly keyPath: string;
}

interface Server {
  readonly key: string;
  readonly cert: string;
  readonly certificate: X509Certificate;
}

function toResult(server: Server, authority: Authority): Certificates {
  return {
    key: server.key,
    cert: server.cert,
    caPath: authority.path,
    notAfter: new Date(server.certificate.validTo),
  };
}

/** Key and chain are one file, so that no reader ever sees a key with another certificate. */
function readServer(text: string | null): Server | null {
  const end = text?.indexOf('-----BEGIN CERTIFICATE-----') ?? -1;
  if (text === null || end <= 0) return null;
  try {
    const cert = text.slice(end);
    return { key: text.slice(0, end), cert, certificate: new X509Certificate(cert) };
  } catch {
    // Unreadable counts as missing: a server certificate can be made anew at no cost.
    return null;
  }
}

function isGood(server: Server, authority: Authority, names: readonly string[], now: Date): boolean {
  const { certificate } = server;
  const present = (certificate.subjectAltName ?? '').split(', ').map(sanValue).sort();
  const wanted = names.map(canonicalAddress).sort();
  return (
    new Date(certificate.validFrom) <= now &&
    new Date(certificate.validTo).getTime() - now.getTime() > renewalDays * dayMs &&
    present.join() === wanted.join() &&
    certificate.verify(authority.certificate.publicKey)
  );
}

/** `DNS:name` or `IP Address:…`. */
function sanValue(entry: string): string {
  return canonicalAddress(entry.slice(entry.indexOf(':') + 1));
}

/** OpenSSL prints ::1 in full. */
function canonicalAddress(text: string): string {
  return text === '0:0:0:0:0:0:0:1' ? '::1' : text;
}

/** Certificate and key appear together, by the rename of a directory: of two processes that try, one wins. */
async function ensureAuthority(directory: string, clock: Clock): Promise<Authority> {
  const home = join(directory, 'ca');
  const kept = await readAuthority(home);
  if (kept) {
    if (new Date(kept.certificate.validTo) > clock.now()) return kept;
    throw new Error(`the certificate authority in ${home} has expired; remove that directory to make a new one`);
  }
  const scratch = await mkdtemp(join(directory, '.ca-'));
  try {
    const made = await makeAuthority(clock.now());
    await writeAtomically(join(scratch, 'ca.key'), made.key, 0o600);
    await writeAtomically(join(scratch, 'ca.crt'), made.cert, 0o644);
    await chmod(scratch, 0o755);
    await rename(scratch, home);
  } catch (thrown) {
    await rm(scratch, { recursive: true, force: true });
    if (!isTaken(thrown)) throw thrown;
  }
  const authority = await readAuthority(home);
  if (!authority) throw new Error(`${home} holds no ca.crt; remove that directory to make a new authority`);
  return authority;
}

async function readAuthority(home: string): Promise<Authority | null> {
  const path = join(home, 'ca.crt');
  const pem = await readIfThere(path);
  if (pem === null) return null;
  return { certificate: new X509Certificate(pem), pem, path, keyPath: join(home, 'ca.key') };
}

async function makeAuthority(now: Date): Promise<{ key: string; cert: string }> {
  const x509 = await loadX509();
  const keys = await generateKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    // A number of its own: two installations' authorities must not look like one to a client that trusts both.
    name: `CN=Catnap certificate authority ${randomBytes(4).toString('hex')}`,
    ...validity(now, authorityDays),
    signingAlgorithm: keyAlgorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { key: await privateKeyPem(keys.privateKey), cert: `${certificate.toString('pem')}\n` };
}

/** The key is read only here, so that it may be kept elsewhere while no certificate is due. */
async function issueServer(authority: Authority, names: readonly string[], now: Date): Promise<string> {
  const x509 = await loadX509();
  const authorityKey = await readAuthorityKey(authority.keyPath);
  const issuer = new x509.X509Certificate(authority.pem);
  const keys = await generateKeys();
  const until = Math.min(now.getTime() + serverDays * dayMs, new Date(authority.certificate.validTo).getTime());
  const extensions: Extension[] = [
    new x509.BasicConstraintsExtension(false, undefined, true),
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
    new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
    new x509.SubjectAlternativeNameExtension(
      names.map((value) => ({ type: loopbackAddresses.includes(value) ? 'ip' : 'dns', value })),
    ),
    await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
  ];
  const certificate = await x509.X509CertificateGenerator.create({
    subject: 'CN=Catnap',
    issuer: issuer.subject,
    notBefore: new Date(now.getTime() - backdateMs),
    notAfter: new Date(until),
    signingAlgorithm: keyAlgorithm,
    publicKey: keys.publicKey,
    signingKey: authorityKey,
    extensions,
  });
  return `${await privateKeyPem(keys.privateKey)}${certificate.toString('pem')}\n${authority.pem}`;
}

function validity(now: Date, days: number): { notBefore: Date; notAfter: Date } {
  return {
    notBefore: new Date(now.getTime() - backdateMs),
    notAfter: new Date(now.getTime() + days * dayMs),
  };
}

function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(keyAlgorithm, true, ['sign', 'verify']);
}

async function privateKeyPem(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key));
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN PRIVATE KEY-----\n${lines.join('\n')}\n-----END PRIVATE KEY-----\n`;
}

async function readAuthorityKey(path: string): Promise<webcrypto.CryptoKey> {
  const pem = await readIfThere(path);
  if (pem === null) throw new Error(`${path} is missing; a new server certificate cannot be signed without it`);
  const der = Buffer.from(pem.replace(/-----[A-Z ]+-----|\s/g, ''), 'base64');
  return webcrypto.subtle.importKey('pkcs8', der, keyAlgorithm, false, ['sign']);
}

/**
 * Loaded only to issue, which is once a year. The library's container insists on decorator metadata being readable at
 * load; none of its classes declares any, so readers that find nothing are enough.
 */
async function loadX509(): Promise<typeof import('@peculiar/x509')> {
  const nothing = () => undefined;
  for (const name of ['getMetadata', 'getOwnMetadata', 'defineMetadata']) {
    if (!(name in Reflect)) Object.defineProperty(Reflect, name, { value: nothing, configurable: true });
  }
  const x509 = await import('@peculiar/x509');
  x509.cryptoProvider.set(webcrypto);
  return x509;
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (thrown) {
    if (isCode(thrown, 'ENOENT')) return null;
    throw thrown;
  }
}

/** The name never refers to half a file, and the content is on disk before it has the name. */
async function writeAtomically(path: string, text: string, mode: number): Promise<void> {
  const scratch = `${path}.${randomBytes(6).toString('hex')}`;
  const file = await open(scratch, 'wx', mode);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(scratch, path);
}

function isTaken(thrown: unknown): boolean {
  return isCode(thrown, 'ENOTEMPTY') || isCode(thrown, 'EEXIST');
}

function isCode(thrown: unknown, code: string): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === code;
}
