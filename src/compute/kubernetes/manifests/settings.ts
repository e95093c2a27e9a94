/** Server settings in the form of a Cluster. */
import type { ClusterSpec } from '../objects/generated.ts';

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
    'stats_temp_directory|synchronous_standby_names|syslog_.*|wal_level|wal_log_hints',
  ].join('|')})$`,
);
const librariesSetting = 'shared_preload_libraries';

/** Settings that are not ours to give are left out, as the local driver's own settings win over those it is given. */
export function postgresqlOf(settings: Readonly<Record<string, string>>): NonNullable<ClusterSpec['postgresql']> {
  const given = Object.entries(settings).filter(([name]) => name !== librariesSetting && !operatorsOwn.test(name));
  const libraries = (settings[librariesSetting] ?? '').split(',').filter((name) => name !== '');
  return { parameters: Object.fromEntries(given), shared_preload_libraries: libraries };
}
