/**
 * Renders postgresql.conf and pg_hba.conf. Pure. In a configuration file the last line for a setting wins, so the order
 * is: our defaults, the caller's settings, then the driver's mandatory ones.
 */
import { adminDatabase, adminRole, replicationRole } from '../../../interface/own-logins.ts';

export type Settings = Readonly<Record<string, string>>;

export interface ServerFacts {
  readonly major: number;
  readonly dataDirectory: string;
  readonly socketDirectory: string;
  readonly hbaFile: string;
  /** Shown in the titles of the server's processes. */
  readonly label: string;
  /** Limit of each session's temporary files; null where a disk limits them all together. */
  readonly sessionTempBytes: number | null;
  /** A second directory to listen in, for replicas; null for a replica itself. */
  readonly replicationDirectory: string | null;
  /** What a replica follows; null for a primary. */
  readonly follows: Primary | null;
}

/** A primary as its replica reaches it. */
export interface Primary {
  readonly socketDirectory: string;
  readonly slot: string;
  readonly passwordFile: string;
}

/** Good for a small server that starts often; the caller may override them. */
const defaults: Settings = {
  // The one setting that affects the time of a start; the page cache does the caching.
  shared_buffers: '16MB',
  timezone: 'UTC',
  datestyle: 'iso, mdy',
  default_text_search_config: 'pg_catalog.english',
  max_logical_replication_workers: '0',
  log_checkpoints: 'off',
};

/** Time, pid, kind of process; `driver/log-lines.ts` reads it. */
const logLinePrefix = '%m [%p] %b ';

/** Safety and the tenant boundary: the caller cannot change these. */
function insisted(facts: ServerFacts): Settings {
  return {
    data_directory: facts.dataDirectory,
    listen_addresses: '',
    port: '5432',
    unix_socket_directories: socketDirectories(facts),
    unix_socket_permissions: '0777', // the directory decides who can enter
    unix_socket_group: '',
    hba_file: facts.hbaFile,
    ident_file: '/dev/null',
    ssl: 'off', // the proxy terminates TLS
    password_encryption: 'scram-sha-256',
    fsync: 'on',
    full_page_writes: 'on',
    restart_after_crash: 'on',
    // One syncfs instead of an fsync of each file after an unclean exit; only Linux has it.
    ...(process.platform === 'linux' && { recovery_init_sync_method: 'syncfs' }),
    jit: 'off', // the embedded binaries have none
    huge_pages: 'off',
    cluster_name: facts.label,
    // Output goes to a file that the host opened and keeps small. `log` leaves out the errors of tenants' own
    // statements, which tenants see themselves and could use to fill the disk.
    log_destination: 'stderr',
    logging_collector: 'off',
    log_min_messages: 'log',
    log_min_error_statement: 'panic',
    log_statement: 'none',
    log_timezone: 'UTC',
    // The kind of process tells what the server says from what a tenant's RAISE LOG says. No name of a role or
    // database: tenants choose those, line breaks included.
    log_line_prefix: logLinePrefix,
    // Room for replicas, and for copies that are being made. A replica that sleeps too long loses its position in the
    // WAL and is rebuilt, so that it cannot fill the disk.
    max_wal_senders: '20',
    max_replication_slots: '40',
    max_slot_wal_keep_size: '1GB',
    ...following(facts.follows),
    ...(facts.sessionTempBytes !== null && { temp_file_limit: kilobytes(facts.sessionTempBytes) }),
    // A file that the server itself can write would outlive and overrule this one.
    ...(facts.major >= 17 && { allow_alter_system: 'off' }),
  };
}

function socketDirectories({ socketDirectory, replicationDirectory }: ServerFacts): string {
  if (replicationDirectory === null) return socketDirectory;
  return [socketDirectory, replicationDirectory].map((path) => `"${path.replaceAll('"', '""')}"`).join(', ');
}

function following(primary: Primary | null): Settings {
  if (primary === null) return { primary_conninfo: '', primary_slot_name: '' };
  const conninfo = {
    host: primary.socketDirectory,
    port: '5432',
    user: replicationRole,
    passfile: primary.passwordFile,
    application_name: primary.slot,
    connect_timeout: '5',
  };
  const words = Object.entries(conninfo).map(([key, value]) => `${key}='${value.replaceAll(/[\\']/g, '\\$&')}'`);
  return {
    primary_conninfo: words.join(' '),
    primary_slot_name: primary.slot,
    hot_standby: 'on',
    // Keeps the primary from removing rows that a long query here still sees.
    hot_standby_feedback: 'on',
    // So that the replica soon notices when its primary wakes.
    wal_retrieve_retry_interval: '200ms',
  };
}

/** Postgres stores this limit in an int: 2 TiB is the most that it can express. */
const kilobytes = (bytes: number) => `${Math.min(Math.floor(bytes / 1024), 2 ** 31 - 1)}kB`;

/** Included by the main file: the settings that change with the size of a running server. */
export const sizeConfigName = 'size.conf';

export function renderServerConfig(facts: ServerFacts, settings: Settings): string {
  return [
    renderSettings({ 'our defaults': defaults, asked: settings }),
    `include_if_exists '${sizeConfigName}'\n`,
    renderSettings({ 'not for discussion': insisted(facts) }),
  ].join('\n');
}

export function renderSettings(sections: Readonly<Record<string, Settings>>): string {
  const lines = ['# Written by Catnap at each start; changes are lost.'];
  for (const [title, settings] of Object.entries(sections)) {
    lines.push('', `# ${title}`);
    for (const [name, value] of Object.entries(settings)) lines.push(`${settingName(name)} = ${quoted(value)}`);
  }
  return `${lines.join('\n')}\n`;
}

/**
 * Catnap's login may only enter Catnap's database, and only that login may: a superuser session in a tenant's database
 * could run a tenant's code, so the server itself refuses one.
 */
export function renderHba(): string {
  return [
    `local ${adminDatabase} ${adminRole} scram-sha-256`,
    `local all ${adminRole} reject`,
    `local ${adminDatabase} all reject`,
    `local replication ${replicationRole} scram-sha-256`,
    // This is physical replication; a logical one names its database.
    'local replication all reject',
    `local all ${replicationRole} reject`,
    'local all all scram-sha-256',
    '',
  ].join('\n');
}

function settingName(name: string): string {
  if (!/^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$/.test(name) || /^include/i.test(name)) {
    throw new Error(`not the name of a setting: ${JSON.stringify(name)}`);
  }
  return name;
}

/** The file allows doubled quotes and backslash escapes, and no value may span lines. */
function quoted(value: string): string {
  if (typeof value !== 'string' || /[\0\r\n]/.test(value)) {
    throw new Error(`not the value of a setting: ${JSON.stringify(value)}`);
  }
  return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}
