/**
 * The only reader of the environment. `readConfig` returns one frozen object; a bad value is refused with the
 * variable's name and what is allowed. `setting-docs.ts` says what each of them means.
 */
import { availableParallelism, homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { type BackupSettings, readBackupSettings } from './backup-settings.ts';
import { daySeconds } from './clock.ts';
import { ConfigError, choice, type Environment, integer, isSet, readUrl, text } from './config-values.ts';
import { isLoopback, parseIpRule } from './ip.ts';
import { type KubernetesSettings, readKubernetesSettings } from './kubernetes-settings.ts';
import { type LogFormat, type LogLevel, logFormats, logLevels } from './log.ts';
import { findMisspeltSettings, type MisspeltSetting } from './misspelt-settings.ts';
import { type OauthIssuers, parseOauthIssuers } from './oauth-issuers.ts';
import { type ExtensionSettings, readExtensionSettings, readPgBin } from './postgres-settings.ts';

export { ConfigError } from './config-values.ts';

export const driverNames = ['local', 'kubernetes'] as const;
export const planNames = ['free', 'launch', 'scale'] as const;
export const proxyRuntimes = ['auto', 'node', 'bun'] as const;
export type ProxyRuntime = (typeof proxyRuntimes)[number];
export type PlanName = (typeof planNames)[number];

/** Majors whose binaries come with the npm packages; others need `CATNAP_PG_BIN_<major>`. */
export const embeddedMajors: readonly number[] = [17, 18];
/** Each proxy keeps a session of its own on a server that gets logins, out of the seven that are reserved there. */
const proxiesMax = 4;
/** Servers and clients on the machine need more CPU than the proxy between them. */
const coresForEachProxy = 4;
/** Several outlast the end of one of them; the work itself waits for disks and servers, which more do not speed up. */
const apisMax = 4;
const workersMax = 4;

export interface Config {
  readonly home: string;
  readonly bind: string;
  readonly httpPort: number;
  readonly pgPort: number;
  /** False when the port is the default, which may give way to 7432 if it is taken. */
  readonly pgPortIsExplicit: boolean;
  /** Processes that share the HTTP port, that carry out operations, and that share the database port. */
  readonly apis: number;
  readonly workers: number;
  readonly proxies: number;
  /** Catnaps with proxies on this system database, which divide what all of them may have together. */
  readonly replicas: number;
  /** How long a process that stops may take to finish what clients have begun. */
  readonly drainSeconds: number;
  /** What the proxies run on; `auto` is Bun where it works, and Node elsewhere. */
  readonly proxyRuntime: ProxyRuntime;
  readonly domain: string;
  readonly region: string;
  readonly publicUrl: string;
  /** The operator's own certificate and key for the database port. */
  readonly tlsFiles: { readonly cert: string; readonly key: string } | undefined;
  readonly databaseUrl: string | undefined;
  /** Where copies go off the machine; undefined for nowhere. */
  readonly backup: BackupSettings | undefined;
  /** An auth provider elsewhere, instead of the embedded one. */
  readonly stack: StackAccess | undefined;
  /** OpenID issuers of the operator's choice, by the id of the OAuth provider; for the embedded auth provider. */
  readonly oauthIssuers: OauthIssuers;
  readonly driver: (typeof driverNames)[number];
  /** Set for the driver of that name. */
  readonly kubernetes: KubernetesSettings | undefined;
  /** The uids that Catnap and the servers run under; null if not started as root: then everything runs as one user. */
  readonly uids: Uids | null;
  /** Whether key sets of third parties may be read from this machine and from private networks. */
  readonly privateKeySets: boolean;
  /** Requests a minute for one key, or undefined for no limit. */
  readonly rateLimitPerMinute: number | undefined;
  readonly suspendMinSeconds: number;
  /** How long deleted projects and branches can be recovered; 0 removes them at once. */
  readonly recoveryDays: number;
  /** How long a look into the past may be unused before it is removed, and how many there may be. */
  readonly lookIdleSeconds: number;
  readonly looksMax: number;
  readonly tempDiskBytes: number | undefined;
  /** What computes with outbound connections reach besides the internet: ranges of addresses, and `loopback`. */
  readonly outboundAllow: readonly string[];
  /** What all running computes may take together by their smallest sizes; undefined for no such limit. */
  readonly capacityCu: number | undefined;
  /** How long a smaller size must have been enough before the autoscaler takes it. */
  readonly scaleDownSeconds: number;
  readonly apiKey: string | undefined;
  /** The key that seals secrets, in place of the one in the home; for several Catnaps on one system database. */
  readonly secretKey: string | undefined;
  /** Where other processes reach the HTTP port, if not on this machine. */
  readonly internalUrl: string | undefined;
  /** The server that takes mails of the embedded auth provider; without one they stay in the outbox. */
  readonly smtpUrl: string | undefined;
  readonly mailFrom: string;
  readonly defaultPlan: PlanName;
  /** Directories of binaries that replace the embedded ones, by major. */
  readonly pgBin: Readonly<Record<number, string>>;
  readonly extensions: ExtensionSettings;
  /** The path that is searched for the machine's programs. */
  readonly programPath: string;
  /** Every major a project may ask for, ascending. */
  readonly pgVersions: readonly number[];
  readonly logLevel: LogLevel;
  /** False when the level is the default, which is quieter on a terminal. */
  readonly logLevelIsExplicit: boolean;
  readonly logFormat: LogFormat;
  /** Variables that are nearly settings. */
  readonly misspelt: readonly MisspeltSetting[];
}

export interface StackAccess {
  readonly url: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

export interface Uids {
  /** Catnap's own processes: API, worker, proxy. */
  readonly service: number;
  readonly systemDatabase: number;
  /** The uid of the first project; the others count up from it. */
  readonly firstTenant: number;
}

export function readConfig(env: Environment = process.env, user = { isRoot: process.getuid?.() === 0 }): Config {
  const bind = text(env, 'CATNAP_BIND', '127.0.0.1', /^[0-9a-fA-F.:]+$/, 'an IP address such as 127.0.0.1 or 0.0.0.0');
  const httpPort = integer(env, 'CATNAP_HTTP_PORT', 7070, 1, 65535);
  const pgBin = readPgBin(env);
  const majors = [...new Set([...embeddedMajors, ...Object.keys(pgBin).map(Number)])].sort((a, b) => a - b);
  const driver = choice(env, 'CATNAP_DRIVER', driverNames, 'local');
  const kubernetes = readKubernetesSettings(env, driver === 'kubernetes', majors);
  const config: Config = {
    home: readHome(env, user.isRoot),
    bind,
    httpPort,
    pgPort: integer(env, 'CATNAP_PG_PORT', 5432, 1, 65535),
    pgPortIsExplicit: isSet(env, 'CATNAP_PG_PORT'),
    apis: integer(env, 'CATNAP_APIS', 1, 1, apisMax),
    workers: integer(env, 'CATNAP_WORKERS', 1, 1, workersMax),
    replicas: integer(env, 'CATNAP_REPLICAS', 1, 1, 100),
    drainSeconds: integer(env, 'CATNAP_DRAIN_SECONDS', 10, 0, 3_600),
    proxies: integer(env, 'CATNAP_PROXIES', proxiesFor(availableParallelism()), 1, proxiesMax),
    proxyRuntime: choice(env, 'CATNAP_PROXY_RUNTIME', proxyRuntimes, 'auto'),
    domain: text(env, 'CATNAP_DOMAIN', 'localhost', /^[a-z0-9]([a-z0-9.-]{0,200}[a-z0-9])?$/, 'a lower-case DNS name'),
    region: text(env, 'CATNAP_REGION', 'local', /^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/, '1 to 32 of a-z, 0-9 and -'),
    publicUrl: readUrl(env, 'CATNAP_PUBLIC_URL', ['http:', 'https:']) ?? `http://${urlHostname(bind)}:${httpPort}`,
    tlsFiles: readTlsFiles(env),
    databaseUrl: readUrl(env, 'CATNAP_DATABASE_URL', ['postgres:', 'postgresql:']),
    backup: readBackupSettings(env),
    stack: readStack(env),
    oauthIssuers: readOauthIssuers(env),
    driver,
    kubernetes,
    uids: readUids(env, user.isRoot),
    privateKeySets:
      choice(env, 'CATNAP_PRIVATE_JWKS', ['on', 'off'] as const, isLoopback(bind) ? 'on' : 'off') === 'on',
    rateLimitPerMinute: readRateLimit(env, bind),
    suspendMinSeconds: integer(env, 'CATNAP_SUSPEND_MIN_SECONDS', 60, 1, 7 * daySeconds),
    recoveryDays: integer(env, 'CATNAP_RECOVERY_DAYS', 7, 0, 365),
    lookIdleSeconds: integer(env, 'CATNAP_LOOK_IDLE_SECONDS', 300, 1, daySeconds),
    looksMax: integer(env, 'CATNAP_LOOKS_MAX', 16, 0, 1_000),
    tempDiskBytes: isSet(env, 'CATNAP_TEMP_DISK_BYTES')
      ? integer(env, 'CATNAP_TEMP_DISK_BYTES', 0, 1_048_576, Number.MAX_SAFE_INTEGER)
      : undefined,
    outboundAllow: readOutboundAllow(env),
    capacityCu: readCapacity(env),
    scaleDownSeconds: integer(env, 'CATNAP_SCALE_DOWN_SECONDS', 30, 1, 3_600),
    apiKey: readApiKey(env),
    secretKey: readSecretKey(env),
    internalUrl: readUrl(env, 'CATNAP_INTERNAL_URL', ['http:', 'https:']),
    smtpUrl: readUrl(env, 'CATNAP_SMTP_URL', ['smtp:', 'smtps:']),
    mailFrom: text(
      env,
      'CATNAP_MAIL_FROM',
      'catnap@localhost',
      /^([^<>\r\n]*<[^\s@<>]+@[^\s@<>]+>|[^\s@<>]+@[^\s@<>]+)$/,
      'an address, or a name and <address>',
    ),
    defaultPlan: choice(env, 'CATNAP_DEFAULT_PLAN', planNames, 'scale'),
    pgBin,
    extensions: readExtensionSettings(env, embeddedMajors),
    programPath: env.PATH ?? '/usr/local/bin:/usr/bin:/bin',
    pgVersions: kubernetes === undefined ? majors : Object.keys(kubernetes.images).map(Number),
    logLevel: choice(env, 'CATNAP_LOG_LEVEL', logLevels, 'info'),
    logLevelIsExplicit: isSet(env, 'CATNAP_LOG_LEVEL'),
    logFormat: choice(env, 'CATNAP_LOG_FORMAT', logFormats, 'auto'),
    misspelt: findMisspeltSettings(env),
  };
  // Only a restore uses it; a bad value is found by any command.
  readBackupKeyLine(env);
  return Object.freeze(config);
}

/** The store that a restore reads from, and the key that opens it, if it is in the environment. */
export function readRestoreSource(from: string, env: Environment = process.env): BackupSettings {
  const settings = readBackupSettings(env, from);
  if (settings === undefined) throw new ConfigError('--from', from, 'file:///folder or s3://bucket/prefix');
  return settings;
}

export function readBackupKeyLine(env: Environment = process.env): string | undefined {
  if (!isSet(env, 'CATNAP_BACKUP_KEY')) return undefined;
  const line = env.CATNAP_BACKUP_KEY ?? '';
  if (/^[A-Za-z0-9_-]{43}$/.test(line)) return line;
  throw new ConfigError(
    'CATNAP_BACKUP_KEY',
    '…',
    'the line that `catnap backup key` prints: 43 letters, digits, - and _',
  );
}

/** Descriptors that a service manager passes to this very process; sd_listen_fds(3) says how. */
export function passedDescriptors(env: Environment = process.env, pid = process.pid): number[] {
  if (env.LISTEN_PID !== String(pid)) return [];
  return Array.from({ length: Number(env.LISTEN_FDS ?? 0) }, (_, index) => 3 + index);
}

/** For a process that Catnap starts; what is undefined is left out. */
export function environmentWith(more: Environment): Environment {
  return { ...process.env, ...more };
}

/** Where the tests of a run find its stock of branches. */
export const readBranchStock = (env: Environment = process.env) => env.CATNAP_BRANCH_STOCK || undefined;
/** For the processes that this one starts from now on; an empty path for none. */
export function passOnBranchStock(path: string): void {
  process.env.CATNAP_BRANCH_STOCK = path;
}

export function proxiesFor(cores: number): number {
  return Math.min(proxiesMax, Math.max(1, Math.floor(cores / coresForEachProxy)));
}

/**
 * The HTTP port as this machine reaches it, past any reverse proxy of the public URL. A wildcard address cannot be
 * dialled everywhere, so the loopback address of its family stands for it.
 */
export function localUrl({ bind, httpPort }: Pick<Config, 'bind' | 'httpPort'>): string {
  const host = bind === '0.0.0.0' ? '127.0.0.1' : bind === '::' ? '::1' : bind;
  return `http://${host.includes(':') ? `[${host}]` : host}:${httpPort}`;
}

function urlHostname(bind: string): string {
  if (bind === '0.0.0.0' || bind === '::' || isLoopback(bind)) return 'localhost';
  return bind.includes(':') ? `[${bind}]` : bind;
}

function readHome(env: Environment, isRoot: boolean): string {
  // Not asked where it is not needed: a user without an entry in /etc/passwd may have no home directory.
  const usual = () => join(env.XDG_DATA_HOME || join(homedir(), '.local', 'share'), 'catnap');
  const home = isSet(env, 'CATNAP_HOME') ? (env.CATNAP_HOME ?? '') : isRoot ? '/var/lib/catnap' : usual();
  if (!isAbsolute(home) || home === '/') throw new ConfigError('CATNAP_HOME', home, 'an absolute path other than /');
  return home.replace(/\/+$/, '');
}

const stackVariables = ['CATNAP_STACK_URL', 'CATNAP_STACK_CLIENT_ID', 'CATNAP_STACK_CLIENT_SECRET'] as const;

function readStack(env: Environment): StackAccess | undefined {
  const url = readUrl(env, 'CATNAP_STACK_URL', ['http:', 'https:']);
  const missing = stackVariables.find((name) => !isSet(env, name));
  const given = stackVariables.find((name) => isSet(env, name));
  if (given === undefined) return undefined;
  if (url === undefined || missing !== undefined) {
    throw new ConfigError(given, '…', `all of ${stackVariables.join(', ')}, or none of them`);
  }
  return { url, clientId: env.CATNAP_STACK_CLIENT_ID ?? '', clientSecret: env.CATNAP_STACK_CLIENT_SECRET ?? '' };
}

function readOauthIssuers(env: Environment): OauthIssuers {
  if (!isSet(env, 'CATNAP_OAUTH_ISSUERS')) return {};
  const value = env.CATNAP_OAUTH_ISSUERS ?? '';
  const found = parseOauthIssuers(value);
  if (found !== undefined) return found;
  const form = 'id=https://issuer, several separated by commas; plain http only on this machine';
  throw new ConfigError('CATNAP_OAUTH_ISSUERS', value, form);
}

function readOutboundAllow(env: Environment): readonly string[] {
  if (!isSet(env, 'CATNAP_OUTBOUND_ALLOW')) return [];
  const value = env.CATNAP_OUTBOUND_ALLOW ?? '';
  const isRange = (one: string) => {
    const rule = parseIpRule(one);
    return rule?.kind === 'block' && rule.family === 'ipv4' && !rule.address.startsWith('127.');
  };
  const found = value.split(',').map((one) => one.trim());
  if (found.every((one) => one === 'loopback' || isRange(one))) return found;
  const form = 'loopback, or IPv4 ranges such as 10.20.0.0/16, several separated by commas';
  throw new ConfigError('CATNAP_OUTBOUND_ALLOW', value, form);
}

function readTlsFiles(env: Environment): Config['tlsFiles'] {
  const names = ['CATNAP_TLS_CERT', 'CATNAP_TLS_KEY'] as const;
  const [cert, key] = names.map((name) => {
    const path = env[name] ?? '';
    if (path !== '' && !isAbsolute(path)) throw new ConfigError(name, path, 'an absolute path of a PEM file');
    return path;
  });
  if (!cert && !key) return undefined;
  if (!cert || !key)
    throw new ConfigError(cert ? names[1] : names[0], '', 'both of CATNAP_TLS_CERT and CATNAP_TLS_KEY');
  return { cert, key };
}

function readUids(env: Environment, isRoot: boolean): Uids | null {
  const base = integer(env, 'CATNAP_UID_BASE', 700_000, 1_000, 2_000_000_000);
  return isRoot ? { service: base, systemDatabase: base + 1, firstTenant: base + 1_000 } : null;
}

function readRateLimit(env: Environment, bind: string): number | undefined {
  if (!isSet(env, 'CATNAP_RATE_LIMIT')) return isLoopback(bind) ? undefined : 700;
  if (env.CATNAP_RATE_LIMIT === 'off') return undefined;
  if (!/^\d+$/.test(env.CATNAP_RATE_LIMIT ?? '')) {
    throw new ConfigError(
      'CATNAP_RATE_LIMIT',
      env.CATNAP_RATE_LIMIT ?? '',
      'off, or requests a minute from 1 to 1000000',
    );
  }
  return integer(env, 'CATNAP_RATE_LIMIT', 700, 1, 1_000_000);
}

function readCapacity(env: Environment): number | undefined {
  if (!isSet(env, 'CATNAP_CAPACITY_CU')) return undefined;
  const value = env.CATNAP_CAPACITY_CU ?? '';
  if (!/^\d{1,6}(\.\d{1,2})?$/.test(value) || Number(value) < 0.25) {
    throw new ConfigError('CATNAP_CAPACITY_CU', value, 'compute units from 0.25 on, such as 8 or 2.5');
  }
  return Number(value);
}

function readApiKey(env: Environment): string | undefined {
  if (!isSet(env, 'CATNAP_API_KEY')) return undefined;
  const value = env.CATNAP_API_KEY ?? '';
  if (!/^[A-Za-z0-9_-]{32,128}$/.test(value)) {
    throw new ConfigError('CATNAP_API_KEY', '…', '32 to 128 of A-Z, a-z, 0-9, _ and -');
  }
  return value;
}

function readSecretKey(env: Environment): string | undefined {
  if (!isSet(env, 'CATNAP_SECRET_KEY')) return undefined;
  const value = env.CATNAP_SECRET_KEY ?? '';
  if (/^[A-Za-z0-9+/]{43}=$/.test(value)) return value;
  throw new ConfigError('CATNAP_SECRET_KEY', '…', '32 bytes in base64, as `openssl rand -base64 32` prints them');
}

/** A library's notice about its own next versions has no place in what `catnap restore` reports. */
export function quietLibraryNotices(): void {
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';
}
