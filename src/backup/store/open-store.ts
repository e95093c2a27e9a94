/** The store that a URL names. */
import { fileURLToPath } from 'node:url';
import type { BackupSettings } from '../../lib/backup-settings.ts';
import { limitUploads } from './bandwidth.ts';
import { FileStore } from './file-store.ts';
import type { ObjectStore } from './object-store.ts';
import { S3Store } from './s3-store.ts';

export function openStore({ url, s3, bytesPerSecond }: BackupSettings): ObjectStore {
  const store = openUnlimited(url, s3);
  return bytesPerSecond === undefined ? store : limitUploads(store, bytesPerSecond);
}

function openUnlimited(url: string, s3: BackupSettings['s3']): ObjectStore {
  const { protocol, hostname, pathname } = new URL(url);
  if (protocol === 'file:') return new FileStore(fileURLToPath(url));
  if (s3 === undefined) throw new Error('a bucket needs an access key');
  return new S3Store({ bucket: hostname, prefix: pathname.replace(/^\/+|\/+$/g, '') }, s3);
}
