/**
 * Files in the data home that hold Catnap's own secrets: sealing key, first API key, secret for the auth provider, and
 * the key of its backups.
 */
import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { chmod, open, readdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../lib/config.ts';

const secretKeyBytes = 32;

export const secretKeyPath = (home: string) => join(home, 'secret.key');
export const apiKeyPath = (home: string) => join(home, 'api-key');
export const backupKeyPath = (home: string) => join(home, 'backup.key');

/**
 * Kept beside the database, never in it: a copy of the database alone opens nothing. An existing database has secrets
 * that only its own key opens, so no new key is made for it.
 */
export async function ensureSecretKey(
  { home, secretKey }: Pick<Config, 'home' | 'secretKey'>,
  databaseIsNew: boolean,
): Promise<string> {
  if (secretKey !== undefined) return secretKey;
  const path = secretKeyPath(home);
  const kept = (await readIfThere(path))?.trim();
  if (kept !== undefined && Buffer.from(kept, 'base64').length === secretKeyBytes) return kept;
  if (kept !== undefined)
    throw new Error(`${path} must hold ${secretKeyBytes} bytes in base64: restore it from a backup`);
  if (!databaseIsNew) {
    throw new Error(`${path} is missing, and without it the secrets in the system database cannot be read: restore it`);
  }
  const made = randomBytes(secretKeyBytes).toString('base64');
  await writeSecret(path, `${made}\n`);
  return made;
}

/**
 * Catnap's credential at the embedded auth provider. Losing it does no harm: a new one works as well. Catnaps that are
 * given their key have to have the same, so it is derived from the key.
 */
export async function ensureStackSecret({ home, secretKey }: Pick<Config, 'home' | 'secretKey'>): Promise<string> {
  if (secretKey !== undefined) return createHmac('sha256', secretKey).update('stack-secret').digest('base64url');
  const path = join(home, 'stack-secret');
  const kept = (await readIfThere(path))?.trim();
  if (kept !== undefined && kept !== '') return kept;
  const made = randomBytes(secretKeyBytes).toString('base64url');
  await writeSecret(path, `${made}\n`);
  return made;
}

/** Made at the first start with a store. Whoever has it can read every backup; without it nobody can. */
export async function ensureBackupKey(home: string, makeLine: () => string): Promise<string> {
  const kept = (await readIfThere(backupKeyPath(home)))?.trim();
  if (kept !== undefined && kept !== '') return kept;
  const made = makeLine();
  await writeSecret(backupKeyPath(home), `${made}\n`);
  return made;
}

export async function readBackupKey(home: string): Promise<string | undefined> {
  return (await readIfThere(backupKeyPath(home)))?.trim();
}

/** Tells this installation from others that might write to the same store. No secret. */
export async function ensureInstallationId(home: string): Promise<string> {
  const path = join(home, 'installation-id');
  const kept = (await readIfThere(path))?.trim();
  if (kept !== undefined && kept !== '') return kept;
  const made = randomUUID();
  await writeSecret(path, `${made}\n`);
  return made;
}

export interface HomeFile {
  readonly name: string;
  readonly content: Buffer;
}

/** What a restored home needs besides its data. The backup key is not among it: that one opens all of this. */
export async function readHomeFiles(home: string): Promise<HomeFile[]> {
  const certificates = await readdir(join(home, 'certificates'), { recursive: true }).catch(() => [] as string[]);
  const names = ['secret.key', 'stack-secret', 'api-key', 'installation-id', ...certificates.map(inCertificates)];
  const found: HomeFile[] = [];
  for (const name of names) {
    const content = await readFile(join(home, name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT' && error.code !== 'EISDIR') throw error;
    });
    if (content) found.push({ name, content });
  }
  return found;
}

const inCertificates = (name: string) => `certificates/${name}`;

export async function writeApiKey(home: string, token: string): Promise<void> {
  await writeSecret(apiKeyPath(home), `${token}\n`);
}

export async function readApiKey(home: string): Promise<string | undefined> {
  return (await readIfThere(apiKeyPath(home)))?.trim();
}

/** Complete or not at all, even if the machine stops in the middle. */
async function writeSecret(path: string, text: string): Promise<void> {
  const temporary = `${path}.new`;
  const file = await open(temporary, 'w', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await chmod(temporary, 0o600);
  await rename(temporary, path);
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
