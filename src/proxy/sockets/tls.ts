/**
 * The proxy's TLS side: a secure context made once per certificate, the in-place upgrade of an accepted socket, and
 * the channel binding of RFC 5929 (`tls-server-end-point`: a hash of the certificate).
 */
import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import { Duplex } from 'node:stream';
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls';
import type { ByteStream } from '../protocol/byte-stream.ts';
import { PeerGone } from '../protocol/message-stream.ts';
import { FieldReader } from '../protocol/wire.ts';
import { BunSocket } from './bun/socket.ts';

export interface TlsMaterial {
  /** Private key, PEM. */
  readonly key: string;
  /** Certificate and its chain, PEM. */
  readonly cert: string;
}

/** Called for each new TLS connection, so that a renewed certificate needs no restart. */
export type TlsSource = () => TlsMaterial;

export interface TlsContext {
  readonly secureContext: SecureContext;
  /** Null when the certificate's signature has no digest of its own; then SCRAM-SHA-256-PLUS is not offered. */
  readonly channelBinding: Buffer | null;
}

/** A stream that has become secure; what is read and written from here on is plain again. */
export interface SecuredStream {
  readonly stream: ByteStream;
  readonly alpnProtocol: string | false | null;
  /** The hostname that the client asked for in its hello. */
  readonly serverName: string | null;
}

export const alpnProtocol = 'postgresql';
/** As the TLS extension has it, behind its length. */
const alpnProtocols = Buffer.from(`\x0a${alpnProtocol}`, 'latin1');

export function createTlsContexts(source: TlsSource): () => TlsContext {
  let current: { material: TlsMaterial; context: TlsContext } | undefined;
  return () => {
    const material = source();
    if (current?.material.cert !== material.cert || current.material.key !== material.key) {
      requireOwnKey(material);
      const secureContext = createSecureContext({ key: material.key, cert: material.cert, minVersion: 'TLSv1.2' });
      current = { material, context: { secureContext, channelBinding: endPointHash(material.cert) } };
    }
    return current.context;
  };
}

/** Each runtime has its own words for this, and none says which files are meant. */
function requireOwnKey({ key, cert }: TlsMaterial): void {
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
    throw new Error('the private key is not that of the certificate');
  }
}

/** Takes over the stream and the bytes that it has not delivered yet. Rejects with PeerGone if the handshake fails. */
export async function upgradeToTls(stream: ByteStream, context: TlsContext): Promise<SecuredStream> {
  if (stream instanceof BunSocket) {
    const { context: secureContext } = context.secureContext;
    await stream.secure({ secureContext, alpnProtocols }).catch((error) => Promise.reject(new PeerGone(error)));
    return { stream, alpnProtocol: stream.alpnProtocol, serverName: stream.serverName };
  }
  if (!(stream instanceof Duplex)) throw new Error('BUG: no stream that could be secured');
  const secured = await upgradeDuplex(stream, context);
  return { stream: secured, alpnProtocol: secured.alpnProtocol, serverName: tlsServerName(secured) };
}

function tlsServerName(socket: { servername?: string | false | null }): string | null {
  return typeof socket.servername === 'string' && socket.servername !== '' ? socket.servername : null;
}

function upgradeDuplex(stream: Duplex, context: TlsContext): Promise<TLSSocket> {
  const secured = new TLSSocket(stream, {
    isServer: true,
    secureContext: context.secureContext,
    ALPNProtocols: [alpnProtocol],
  });
  return new Promise((resolve, reject) => {
    const removeListeners = () => {
      secured.off('secure', onSecure);
      secured.off('error', onError);
      secured.off('close', onClose);
    };
    const onSecure = () => {
      removeListeners();
      resolve(secured);
    };
    const onError = (error: Error) => {
      removeListeners();
      // Later errors of the socket would have no listener, which ends the process.
      secured.on('error', () => {});
      secured.destroy();
      reject(new PeerGone(error));
    };
    const onClose = () => onError(new Error('closed during the TLS handshake'));
    secured.on('secure', onSecure);
    secured.on('error', onError);
    secured.on('close', onClose);
  });
}

export function endPointHash(certificatePem: string): Buffer | null {
  const der = new X509Certificate(certificatePem).raw;
  const digest = digestOf(signatureAlgorithm(der));
  return digest === null ? null : createHash(digest).update(der).digest();
}

/** Certificate ::= SEQUENCE { tbsCertificate, signatureAlgorithm SEQUENCE { OBJECT IDENTIFIER … }, … } */
function signatureAlgorithm(der: Buffer): string {
  const certificate = new FieldReader(derValue(new FieldReader(der)));
  derValue(certificate);
  const algorithm = new FieldReader(derValue(certificate));
  return derValue(algorithm).toString('hex');
}

function derValue(reader: FieldReader): Buffer {
  reader.byte();
  const first = reader.byte();
  if (first < 0x80) return reader.bytes(first);
  return reader.bytes(reader.bytes(first & 0x7f).readUIntBE(0, first & 0x7f));
}

/** RFC 5929 section 4.1: MD5 and SHA-1 are replaced by SHA-256. */
function digestOf(algorithmOid: string): string | null {
  const digests: Readonly<Record<string, string>> = {
    '2a864886f70d010104': 'sha256', // md5WithRSAEncryption
    '2a864886f70d010105': 'sha256', // sha1WithRSAEncryption
    '2a864886f70d01010b': 'sha256',
    '2a864886f70d01010c': 'sha384',
    '2a864886f70d01010d': 'sha512',
    '2a8648ce3d0401': 'sha256', // ecdsa-with-SHA1
    '2a8648ce3d040302': 'sha256',
    '2a8648ce3d040303': 'sha384',
    '2a8648ce3d040304': 'sha512',
  };
  return digests[algorithmOid] ?? null;
}
