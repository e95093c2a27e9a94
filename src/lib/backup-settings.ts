/**
 * The settings of the store that keeps copies off the machine. Keys of a bucket may also come from the variables that
 * other S3 clients read; Catnap's own take precedence, all of them together.
 */
import { isAbsolute } from 'node:path';
import { daySeconds } from './clock.ts';
import { ConfigError, choice, type Environment, integer, isSet, readUrl, text } from './config-values.ts';

export interface BackupSettings {
  /** `file:///folder` or `s3://bucket/prefix`, without a slash at its end. */
  readonly url: string;
  /** Set for a bucket. */
  readonly s3: S3Access | undefined;
  /** Bound of all uploads together; undefined for none. */
  readonly bytesPerSecond: number | undefined;
  /** How long new log may wait on the machine before it is uploaded. */
  readonly delaySeconds: number;
  /** How often something is restored from the store to see that it can be; undefined for never. */
  readonly verifySeconds?: number | undefined;
}

export interface S3Access {
  /** Undefined for Amazon's own, which follows from the region. */
  readonly endpoint: string | undefined;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | undefined;
  /** The bucket is in the path rather than in the host name, as most servers but Amazon's want it. */
  readonly pathStyle: boolean;
}

const ownKeys = { id: 'CATNAP_BACKUP_S3_ACCESS_KEY_ID', secret: 'CATNAP_BACKUP_S3_SECRET_ACCESS_KEY' } as const;
const commonKeys = { id: 'AWS_ACCESS_KEY_ID', secret: 'AWS_SECRET_ACCESS_KEY' } as const;
const urlForm = 'file:///folder or s3://bucket/prefix';

/** `given` names another store than the configured one, as a restore does. */
export function readBackupSettings(env: Environment, given?: string): BackupSettings | undefined {
  // All are read whether or not they are used, so that a bad value is found when it is set.
  const bytesPerSecond = readBandwidth(env);
  const delaySeconds = integer(env, 'CATNAP_BACKUP_DELAY', 30, 1, 3_600);
  const verify = choice(env, 'CATNAP_BACKUP_VERIFY', ['off', 'daily', 'weekly'] as const, 'off');
  const verifySeconds = { off: undefined, daily: daySeconds, weekly: 7 * daySeconds }[verify];
  const s3 = readS3(env);
  const value = given ?? (isSet(env, 'CATNAP_BACKUP_URL') ? env.CATNAP_BACKUP_URL : undefined);
  if (value === undefined) return undefined;
  const url = parseStoreUrl(value);
  if (url === undefined) throw new ConfigError('CATNAP_BACKUP_URL', hidePassword(value), urlForm);
  if (url.startsWith('file:')) return { url, s3: undefined, bytesPerSecond, delaySeconds, verifySeconds };
  if (s3 === undefined) {
    throw new ConfigError('CATNAP_BACKUP_URL', url, `a bucket together with ${ownKeys.id} and ${ownKeys.secret}`);
  }
  return { url, s3, bytesPerSecond, delaySeconds, verifySeconds };
}

/** The URL in one form, or undefined if it is none of the two kinds. */
function parseStoreUrl(value: string): string | undefined {
  if (!URL.canParse(value)) return undefined;
  const { protocol, hostname, pathname, username, password, port, search, hash } = new URL(value);
  if (username !== '' || password !== '' || port !== '' || search !== '' || hash !== '') return undefined;
  const path = pathname.replace(/\/+$/, '');
  if (protocol === 'file:') {
    return hostname === '' && path !== '' && isAbsolute(path) && !/%/.test(path) ? `file://${path}` : undefined;
  }
  const isBucket = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(hostname) && /^[A-Za-z0-9._/-]*$/.test(path);
  return protocol === 's3:' && isBucket && !path.includes('//') ? `s3://${hostname}${path}` : undefined;
}

const hidePassword = (url: string) => url.replace(/\/\/[^@/]*@/, '//…@');

function readS3(env: Environment): S3Access | undefined {
  const keys = isSet(env, ownKeys.id) || isSet(env, ownKeys.secret) ? ownKeys : commonKeys;
  const endpoint =
    readUrl(env, 'CATNAP_BACKUP_S3_ENDPOINT', ['https:', 'http:']) ??
    (isSet(env, 'AWS_ENDPOINT_URL_S3') ? readUrl(env, 'AWS_ENDPOINT_URL_S3', ['https:', 'http:']) : undefined);
  const region = text(
    env,
    isSet(env, 'CATNAP_BACKUP_S3_REGION') ? 'CATNAP_BACKUP_S3_REGION' : 'AWS_REGION',
    'us-east-1',
    /^[a-z0-9-]{1,64}$/,
    'a region such as eu-central-1',
  );
  const style = choice(
    env,
    'CATNAP_BACKUP_S3_PATH_STYLE',
    ['on', 'off'] as const,
    endpoint === undefined ? 'off' : 'on',
  );
  const accessKeyId = env[keys.id] ?? '';
  const secretAccessKey = env[keys.secret] ?? '';
  if (accessKeyId === '' && secretAccessKey === '') return undefined;
  if (accessKeyId === '' || secretAccessKey === '') {
    throw new ConfigError(accessKeyId === '' ? keys.secret : keys.id, '…', `both of ${keys.id} and ${keys.secret}`);
  }
  const sessionToken = keys === commonKeys && isSet(env, 'AWS_SESSION_TOKEN') ? env.AWS_SESSION_TOKEN : undefined;
  return { endpoint, region, accessKeyId, secretAccessKey, sessionToken, pathStyle: style === 'on' };
}

function readBandwidth(env: Environment): number | undefined {
  const name = 'CATNAP_BACKUP_BANDWIDTH';
  if (!isSet(env, name) || env[name] === 'off') return undefined;
  const value = env[name] ?? '';
  const [, digits = '', unit = ''] = /^(\d{1,9})([KMG]?)$/.exec(value) ?? [];
  const bytes = Number(digits) * 1024 ** ['', 'K', 'M', 'G'].indexOf(unit);
  if (digits === '' || bytes < 65_536) {
    throw new ConfigError(name, value, 'off, or bytes a second from 64K on, such as 500K or 20M (powers of 1024)');
  }
  return bytes;
}
