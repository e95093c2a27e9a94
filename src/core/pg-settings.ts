/**
 * Which server settings an owner may choose. What is on the list tunes queries and sessions; what is not is refused by
 * name: known dangers with their reason, the rest as unknown. Pure. Postgres itself judges the values.
 */
import { invalid } from '../lib/errors.ts';

export type PgSettings = Readonly<Record<string, string>>;

const settingsMax = 200;
const valueLengthMax = 1_000;

/** Names and families (`…*`) that an owner may set. */
const allowed = names(`
  application_name array_nulls auto_explain.* autovacuum* backend_flush_after backslash_quote bgwriter_* bytea_output
  check_function_bodies checkpoint_completion_target checkpoint_flush_after checkpoint_timeout
  client_connection_check_interval client_min_messages commit_delay commit_siblings commit_timestamp_buffers
  compute_query_id constraint_exclusion cpu_* createrole_self_grant cursor_tuple_fraction datestyle deadlock_timeout
  debug_print_* default_statistics_target default_text_search_config default_toast_compression
  default_transaction_deferrable default_transaction_isolation default_transaction_read_only
  effective_cache_size effective_io_concurrency enable_* escape_string_warning event_triggers
  extra_float_digits file_copy_method debug_parallel_query from_collapse_limit geqo* gin_*
  hash_mem_multiplier hnsw.* icu_validation_level idle_in_transaction_session_timeout idle_replication_slot_timeout
  idle_session_timeout intervalstyle io_combine_limit io_max_combine_limit ivfflat.* join_collapse_limit lc_messages lc_monetary
  lc_numeric lc_time lo_compat_privileges lock_timeout logical_decoding_work_mem maintenance_io_concurrency
  maintenance_work_mem max_locks_per_transaction max_parallel_* max_pred_locks_* max_prepared_transactions
  max_stack_depth max_wal_size min_dynamic_shared_memory min_parallel_* min_wal_size multixact_*_buffers
  notify_buffers parallel_* pg_stat_statements.* pg_trgm.* plan_cache_mode plpgsql.* quote_all_identifiers
  random_page_cost recursive_worktable_factor row_security search_path seq_page_cost serializable_buffers
  standard_conforming_strings statement_timeout stats_fetch_consistency subtransaction_buffers synchronize_seqscans
  synchronous_commit tcp_keepalives_* tcp_user_timeout temp_buffers timezone track_* transaction_buffers
  transaction_timeout transform_null_equals vacuum_* wal_compression wal_skip_threshold wal_writer_* work_mem xmlbinary
  xmloption`);

/** Tried in order; the first family that fits gives the reason. */
const refused: readonly (readonly [pattern: RegExp, reason: string])[] = [
  [
    names(`max_connections shared_buffers max_worker_processes *reserved_connections huge_page* shared_memory_*`),
    'it follows from the size of the compute',
  ],
  [
    names(`fsync full_page_writes wal_sync_method wal_init_zero wal_recycle data_sync_retry zero_damaged_pages
      ignore_* recovery_* restart_after_crash data_checksums wal_log_hints`),
    'it could lose or damage data',
  ],
  [
    names(`*_command archive_* restore_* promote_trigger_file backtrace_functions`),
    'it would run programs on the server',
  ],
  [
    names(`*_preload_libraries *library_path jit* extension_control_path`),
    'only libraries that come with Catnap are loaded',
  ],
  [
    names(`listen_addresses port unix_socket* bonjour* ssl* krb_* gss* authentication_timeout
      password_encryption scram_* db_user_namespace pre_auth_delay post_auth_delay oauth_* md5_*
      allow_alter_system allow_in_place_tablespaces allow_system_table_mods`),
    'it guards who can reach the server',
  ],
  [
    names(`data_directory* config_file hba_file ident_file external_pid_file temp_tablespaces
      default_tablespace temp_file_limit include*`),
    'Catnap lays out the server’s files',
  ],
  [
    names(`log_* logging_collector syslog* event_source cluster_name update_process_title`),
    'the server’s log belongs to the operator',
  ],
  [
    names(`wal_level max_wal_senders max_replication_slots max_slot_wal_keep_size wal_keep_size hot_standby*
      primary_* synchronous_standby_names *replication* wal_receiver_* wal_sender_timeout
      wal_retrieve_retry_interval max_standby_* sync_replication_slots standby_slot_names
      synchronized_standby_slots`),
    'Catnap runs the replication',
  ],
];

/** Refuses what an owner may not set; returns the settings with their names in lower case, as Postgres knows them. */
export function requirePgSettings(settings: PgSettings, field: string): PgSettings {
  const entries = Object.entries(settings);
  if (entries.length > settingsMax)
    throw invalid(`invalid request: ${field} must have at most ${settingsMax} settings`);
  const kept: Record<string, string> = {};
  for (const [given, value] of entries) {
    const name = given.toLowerCase();
    const reason = refusalOf(name);
    if (reason !== null) throw invalid(`invalid request: ${field}.${given} cannot be set: ${reason}`);
    if (value.length > valueLengthMax || /[\0\r\n]/.test(value)) {
      throw invalid(`invalid request: ${field}.${given} must be one line of at most ${valueLengthMax} characters`);
    }
    kept[name] = value;
  }
  return kept;
}

export function refusalOf(name: string): string | null {
  const known = refused.find(([pattern]) => pattern.test(name));
  if (known !== undefined) return known[1];
  return allowed.test(name) ? null : 'it is not among the settings that an owner can choose';
}

/** A pattern from words in which `*` stands for any run of characters. */
function names(words: string): RegExp {
  const alternatives = words
    .trim()
    .split(/\s+/)
    .map((word) => word.replaceAll('.', '\\.').replaceAll('*', '[a-z0-9_.]*'));
  return new RegExp(`^(?:${alternatives.join('|')})$`);
}
