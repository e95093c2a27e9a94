/**
 * The certificate of the database port, kept up to date while Catnap runs: its own, renewed before it expires, or the
 * operator's, read again when its files change. The parent does this, because it can read what its children cannot, and
 * passes each new certificate on to them; new connections get it.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { ensureCertificates } from '../lib/certificates.ts';
import type { Clock } from '../lib/clock.ts';
import { type Config, ConfigError } from '../lib/config.ts';
import { errorText } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';

/** A certificate with its chain, and its private key, both as PEM. */
export interface CertificatePair {
  readonly key: string;
  readonly cert: string;
}

export interface CertificateSource {
  current(): CertificatePair;
  /** Calls the listener with the certificate at once and whenever it changes; returns a function that stops that. */
  follow(listener: (certificate: CertificatePair) => void): () => void;
  stop(): void;
}

export interface CertificateSourceOptions {
  readonly config: Pick<Config, 'domain' | 'region' | 'tlsFiles'>;
  /** Where Catnap's own certificates are kept. */
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly everyMs?: number;
}

/** Files are read often, because an operator waits for the change; a renewal is due once a year. */
const filesEveryMs = 5_000;
const renewalEveryMs = 3_600_000;

/** Rejects when the operator's files are not a certificate with its key. */
export async function startCertificateSource(options: CertificateSourceOptions): Promise<CertificateSource> {
  const { config, log } = options;
  const load = () => (config.tlsFiles ? readPair(config.tlsFiles) : makeOwn(options));
  let material = await load();
  let lastProblem = '';
  const listeners = new Set<(certificate: CertificatePair) => void>();

  const reload = async () => {
    try {
      const next = await load();
      lastProblem = '';
      if (next.cert === material.cert && next.key === material.key) return;
      material = next;
      const { subject, validTo } = new X509Certificate(next.cert);
      log.info({ subject, validTo }, 'new connections get a new certificate');
      for (const listener of listeners) listener(material);
    } catch (thrown) {
      // A half-finished change, or a mistake: the last good certificate stays in use, and the problem is logged once.
      const problem = errorText(thrown);
      if (problem !== lastProblem) log.error({ reason: problem }, 'the certificate could not be renewed');
      lastProblem = problem;
    }
  };
  let isReloading = false;
  const timer = setInterval(
    async () => {
      if (isReloading) return;
      isReloading = true;
      await reload();
      isReloading = false;
    },
    options.everyMs ?? (config.tlsFiles ? filesEveryMs : renewalEveryMs),
  );
  timer.unref();

  return {
    current: () => material,
    follow(listener) {
      listeners.add(listener);
      listener(material);
      return () => listeners.delete(listener);
    },
    stop: () => clearInterval(timer),
  };
}

async function makeOwn({ config, directory, clock }: CertificateSourceOptions): Promise<CertificatePair> {
  const { key, cert } = await ensureCertificates({ ...config, directory, clock });
  return { key, cert };
}

async function readPair(files: { readonly cert: string; readonly key: string }): Promise<CertificatePair> {
  const [cert, key] = await Promise.all([readPem('CATNAP_TLS_CERT', files.cert), readPem('CATNAP_TLS_KEY', files.key)]);
  try {
    if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) throw new Error('they are no pair');
    createSecureContext({ cert, key });
  } catch (thrown) {
    const allowed = `a certificate in PEM that fits the key in CATNAP_TLS_KEY (${errorText(thrown)})`;
    throw new ConfigError('CATNAP_TLS_CERT', files.cert, allowed);
  }
  return { key, cert };
}

async function readPem(variable: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (thrown) {
    throw new ConfigError(variable, path, `a file that can be read (${errorText(thrown)})`);
  }
}
