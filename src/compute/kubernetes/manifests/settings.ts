/** Server settings in the form of a Cluster. */
import type { ComputeSpec } from '../../interface/driver.ts';
import { adminDatabase, adminRole } from '../../interface/own-logins.ts';
import type { ClusterSpec } from '../objects/generated.ts';
import { bytesIn, startResources } from './sizes.ts';

/**
 * Decided by the operator, which refuses a Cluster that names one: where the server listens and logs, its files, TLS,
 * archiving, recovery, replication.
 */
const operatorsOwn = new RegExp(
  `^(${[
    'allow_system_table_mods|bonjour.*|cluster_name|config_file|data_directory|data_sync_retry|event_source',
    'external_pid_file|hba_file|hot_standby|ident_file|jit_provider|listen_addresses|logging_collector|port',
    'primary_.*|promote_trigger_file|recovery_.*|restore_command|archive_.*|full_page_writes|restart_after_crash',
    'unix_socket_.*|log_(destination|directory|file_mode|filename|rotation_.*|truncate_on_rotation)|ssl|ssl_.*',
    'stats_temp_directory|synchronous_standby_names|synchronized_standby_slots|syslog_.*|temp_tablespaces',
    'pg_failover_slots\\..*|wal_level|wal_log_hints',
  ].join('|')})$`,
);
const librariesSetting = 'shared_preload_libraries';

/** Settings that are not ours to give are left out, as the local driver's own settings win over those it is given. */
export function postgresqlOf(settings: Readonly<Record<string, string>>): NonNullable<ClusterSpec['postgresql']> {
  const given = Object.entries(settings).filter(([name]) => name !== librariesSetting && !operatorsOwn.test(name));
  const libraries = (settings[librariesSetting] ?? '').split(',').filter((name) => name !== '');
  const parameters = Object.fromEntries(given.map(([name, value]) => [name, boundedBuffers(name, value)]));
  return { parameters, shared_preload_libraries: libraries };
}

/**
 * The operator refuses a Cluster whose buffers exceed the memory that its pods request at first. That request stays
 * small for every size of compute, and most of the caching is the page cache's.
 */
function boundedBuffers(name: string, value: string): string {
  const mostBytes = bytesIn(startResources.requests.memory);
  return name === 'shared_buffers' && (sizeIn(value) ?? 0) > mostBytes ? `${mostBytes / 1024 ** 2}MB` : value;
}

/**
 * What the operator's webhook refuses although Postgres takes it: null when there is nothing. Without this check a
 * setting would be accepted, and every later start of the compute refused.
 */
export function settingsProblem(settings: Readonly<Record<string, string>>): string | null {
  const { min_wal_size: least = '80MB', max_wal_size: most = '1GB' } = settings;
  for (const [name, value] of Object.entries({ min_wal_size: least, max_wal_size: most })) {
    if (sizeIn(value) === null) return `invalid value for parameter "${name}": "${value}" (on Kubernetes: 1GB, 64MB)`;
  }
  if ((sizeIn(least) ?? 0) < (sizeIn(most) ?? 0)) return null;
  return `min_wal_size (${least}) must be smaller than max_wal_size (${most})`;
}

const unitBytes: Readonly<Record<string, number>> = { B: 1, kB: 1024, MB: 1024 ** 2, GB: 1024 ** 3, TB: 1024 ** 4 };

/** As the operator reads a size: in megabytes if it has no unit. Null for what it does not understand. */
function sizeIn(value: string): number | null {
  const [, digits, unit = 'MB'] = /^(\d+(?:\.\d+)?) ?([kMGT]?B)?$/.exec(value.trim()) ?? [];
  const bytes = unitBytes[unit];
  return digits === undefined || bytes === undefined ? null : Number(digits) * bytes;
}

/** As on one machine: good for a small server that starts often, and a compute's own settings come after them. */
const defaults: Readonly<Record<string, string>> = {
  shared_buffers: '16MB',
  timezone: 'UTC',
  datestyle: 'iso, mdy',
  default_text_search_config: 'pg_catalog.english',
  max_logical_replication_workers: '0',
  log_checkpoints: 'off',
};

/** For a Cluster that no compute serves: a copy must not follow the publishers of its source. */
export const unservedSettings = defaults;

const ofReplicas: Readonly<Record<string, string>> = {
  // Keeps the primary from removing rows that a long query here still sees.
  hot_standby_feedback: 'on',
  // So that a replica soon notices that its primary has woken. Not more often: before each attempt the server asks the
  // instance manager for archived log, which starts a program.
  wal_retrieve_retry_interval: '2s',
};

/** What a compute is to run with. Those that follow its size come after its own, and Catnap's win over both. */
export function settingsFor({
  settings,
  limits,
  tempDiskBytes,
  readOnly,
}: Pick<ComputeSpec, 'settings' | 'limits' | 'tempDiskBytes' | 'readOnly'>): Readonly<Record<string, string>> {
  return {
    ...defaults,
    ...settings,
    ...limits.settings,
    password_encryption: 'scram-sha-256',
    fsync: 'on',
    // A tenant's errors are the tenant's to see, and could fill a log.
    log_min_messages: 'log',
    log_min_error_statement: 'panic',
    log_statement: 'none',
    max_slot_wal_keep_size: '1GB',
    temp_file_limit: kilobytes(tempDiskBytes),
    ...(readOnly && ofReplicas),
  };
}

/** Postgres stores this limit in an int: 2 TiB is the most that it can express. */
const kilobytes = (bytes: number) => `${Math.min(Math.floor(bytes / 1024), 2 ** 31 - 1)}kB`;

/**
 * Come before the operator's last rule, which lets every password in. Catnap's login enters Catnap's own database
 * alone, and nobody else does: a superuser's session in a tenant's database could run a tenant's code. Physical
 * replication would copy Catnap's roles; the operator's own rule for its replicas comes first.
 */
export const loginRules: readonly string[] = [
  `host ${adminDatabase} ${adminRole} all scram-sha-256`,
  `host all ${adminRole} all reject`,
  `host ${adminDatabase} all all reject`,
  'host replication all all reject',
];
