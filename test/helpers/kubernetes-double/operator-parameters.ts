/** Parameters of Postgres that the operator decides on, or writes into every Cluster: those of version 1.30.0. */
import type { KubernetesObject } from '../../../src/compute/kubernetes/client/objects.ts';
import type { Cluster } from '../../../src/compute/kubernetes/objects/kinds.ts';

/** A Cluster that gives one of them another value is refused. */
export const fixedParameters = new Set(
  `allow_system_table_mods archive_cleanup_command archive_command archive_mode bonjour bonjour_name cluster_name
  config_file data_directory data_sync_retry event_source external_pid_file hba_file hot_standby ident_file jit_provider
  listen_addresses log_destination log_directory log_file_mode log_filename log_rotation_age log_rotation_size
  log_truncate_on_rotation logging_collector pg_failover_slots.primary_dsn pg_failover_slots.standby_slot_names port
  primary_conninfo primary_slot_name promote_trigger_file recovery_end_command recovery_min_apply_delay recovery_target
  recovery_target_action recovery_target_inclusive recovery_target_lsn recovery_target_name recovery_target_time
  recovery_target_timeline recovery_target_xid restart_after_crash restore_command shared_preload_libraries ssl
  ssl_ca_file ssl_cert_file ssl_crl_file ssl_dh_params_file ssl_ecdh_curve ssl_key_file ssl_passphrase_command
  ssl_passphrase_command_supports_reload ssl_prefer_server_ciphers stats_temp_directory synchronized_standby_slots
  synchronous_standby_names syslog_facility syslog_ident syslog_sequence_numbers syslog_split_messages temp_tablespaces
  unix_socket_directories unix_socket_group unix_socket_permissions`.split(/\s+/),
);

/** As a real operator wrote them into a Cluster of Postgres 17. */
export const operatorsDefaults: Readonly<Record<string, string>> = {
  archive_mode: 'on',
  archive_timeout: '5min',
  dynamic_shared_memory_type: 'posix',
  full_page_writes: 'on',
  log_destination: 'csvlog',
  log_directory: '/controller/log',
  log_filename: 'postgres',
  log_rotation_age: '0',
  log_rotation_size: '0',
  log_truncate_on_rotation: 'false',
  logging_collector: 'on',
  max_parallel_workers: '32',
  max_replication_slots: '32',
  max_worker_processes: '32',
  shared_memory_type: 'mmap',
  shared_preload_libraries: '',
  ssl_max_protocol_version: 'TLSv1.3',
  ssl_min_protocol_version: 'TLSv1.3',
  wal_keep_size: '512MB',
  wal_level: 'logical',
  wal_log_hints: 'on',
  wal_receiver_timeout: '5s',
  wal_sender_timeout: '5s',
};

export const alterSystemOf = ({ spec }: Cluster) => (spec.postgresql?.enableAlterSystem ? 'on' : 'off');

/** What the operator's webhook makes of a Cluster before it is checked and stored. */
export function withOperatorsDefaults<T extends KubernetesObject>(object: T): T {
  if (object.kind !== 'Cluster') return object;
  const { spec } = object as unknown as Cluster;
  // What is no Cluster at all is for the schema to refuse.
  if (typeof spec !== 'object' || spec === null) return object;
  const parameters = { ...operatorsDefaults, ...spec.postgresql?.parameters };
  return { ...object, spec: { ...spec, postgresql: { ...spec.postgresql, parameters } } };
}
