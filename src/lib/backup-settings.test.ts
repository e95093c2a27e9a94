import { describe, expect, test } from 'vitest';
import { readBackupSettings } from './backup-settings.ts';
import { ConfigError } from './config-values.ts';

const keys = { CATNAP_BACKUP_S3_ACCESS_KEY_ID: 'id', CATNAP_BACKUP_S3_SECRET_ACCESS_KEY: 'secret' };
const read = (url: string, env: Record<string, string> = {}) => readBackupSettings({ CATNAP_BACKUP_URL: url, ...env });

describe('the settings of a store', () => {
  test('are none without a URL', () => {
    expect(readBackupSettings({})).toBeUndefined();
    expect(readBackupSettings({ ...keys, CATNAP_BACKUP_BANDWIDTH: '1M' })).toBeUndefined();
  });

  test('name a folder or a bucket', () => {
    expect(read('file:///mnt/backup/')).toEqual({
      url: 'file:///mnt/backup',
      s3: undefined,
      bytesPerSecond: undefined,
      delaySeconds: 30,
    });
    expect(read('s3://bucket/a/b/', keys)).toMatchObject({
      url: 's3://bucket/a/b',
      s3: { endpoint: undefined, region: 'us-east-1', accessKeyId: 'id', pathStyle: false },
    });
  });

  test('take an endpoint, which wants the bucket in its path, and the keys of other clients', () => {
    const common = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b', AWS_SESSION_TOKEN: 't', AWS_REGION: 'eu-1' };
    const s3 = { endpoint: 'http://s3:9000', pathStyle: true, region: 'eu-1', accessKeyId: 'a', sessionToken: 't' };
    expect(read('s3://bucket', { ...common, CATNAP_BACKUP_S3_ENDPOINT: 'http://s3:9000/' })).toMatchObject({ s3 });
    expect(read('s3://bucket', { ...common, ...keys })?.s3).toMatchObject({
      accessKeyId: 'id',
      sessionToken: undefined,
    });
  });

  test.each([
    ['500K', 512_000],
    ['20M', 20_971_520],
    ['65536', 65_536],
    ['off', undefined],
  ])('read %s as a bandwidth', (text, bytes) => {
    expect(read('file:///b', { CATNAP_BACKUP_BANDWIDTH: text })?.bytesPerSecond).toBe(bytes);
  });

  test.each([
    ['http://bucket/x'],
    ['file://host/x'],
    ['file:///'],
    ['/mnt/backup'],
    ['s3://Bucket_/x'],
    ['s3://bucket/a//b'],
    ['s3://bucket/a?b'],
    ['s3://id:secret@bucket/a'],
  ])('refuse %s', (url) => {
    expect(() => read(url, keys)).toThrow(ConfigError);
    expect(() => read(url, keys)).not.toThrow(/id:secret/);
  });

  test('refuse a bucket without keys, half of the keys, and a bandwidth that never ends', () => {
    expect(() => read('s3://bucket')).toThrow(/CATNAP_BACKUP_S3_ACCESS_KEY_ID/);
    expect(() => read('s3://bucket', { AWS_ACCESS_KEY_ID: 'a' })).toThrow(/AWS_SECRET_ACCESS_KEY/);
    expect(() => read('file:///b', { CATNAP_BACKUP_BANDWIDTH: '1K' })).toThrow(/CATNAP_BACKUP_BANDWIDTH/);
  });
});
