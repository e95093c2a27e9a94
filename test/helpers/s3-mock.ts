/** A small S3 server from npm, for tests of the whole program; it takes any secret. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { eventually } from './eventually.ts';
import { foreignModules } from './foreign.ts';
import { freePort } from './free-ports.ts';

const library = join(foreignModules, 's3rver');
const program = fileURLToPath(new URL('../../container/store/server.mjs', import.meta.url));
const secret = 'S3RVER';

export const hasS3Mock = existsSync(library);

export const spawnS3Mock = (folder: string, port: number): ChildProcess =>
  spawn(process.execPath, [program, library, folder, String(port)], { stdio: 'ignore' });

export interface S3Mock {
  /** Settings of a Catnap that uses its bucket, `catnap`. */
  readonly env: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

export async function startS3Mock(): Promise<S3Mock> {
  const folder = await mkdtemp(join(tmpdir(), 'cn-s3-'));
  const port = await freePort();
  const server = spawnS3Mock(folder, port);
  const endpoint = `http://127.0.0.1:${port}`;
  const client = new S3Client({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId: secret, secretAccessKey: secret },
    maxAttempts: 1,
  });
  await eventually(() => client.send(new CreateBucketCommand({ Bucket: 'catnap' })), { everyMs: 200 });
  client.destroy();
  return {
    env: {
      CATNAP_BACKUP_S3_ENDPOINT: endpoint,
      CATNAP_BACKUP_S3_ACCESS_KEY_ID: secret,
      CATNAP_BACKUP_S3_SECRET_ACCESS_KEY: secret,
    },
    async close() {
      server.kill('SIGKILL');
      await rm(folder, { recursive: true, force: true });
    },
  };
}
