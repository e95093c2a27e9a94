/** Types of the API. Written by `npm run generate` from the OpenAPI document; do not edit. */

/** Sent with every status of 400 and above. */
export interface GeneralError {
  /** Also in the x-request-id header and in the log. */
  readonly request_id: string;
  /** A fixed word for a few errors, else empty. */
  readonly code: string;
  /** What is wrong, for a person: lower case, details as key:"value". */
  readonly message: string;
}

/** Left out when the page is empty. */
export interface Pagination {
  /** Hand back as `cursor` to get what follows this page. */
  readonly cursor: string;
}

/** Where the list goes on. */
export interface CursorPagination {
  /** Hand back as `cursor`; absent on the last page. */
  readonly next?: string;
  /** The attribute that the list is sorted by. */
  readonly sort_by: string;
  /** ASC or DESC. */
  readonly sort_order: string;
}

/** One durable piece of work on a project, a branch or a compute. */
export interface Operation {
  /** Id of the operation. */
  readonly id: string;
  /** Id of the project. */
  readonly project_id: string;
  /** Id of the branch. */
  readonly branch_id?: string;
  /** Id of the endpoint. */
  readonly endpoint_id?: string;
  /** What is done. */
  readonly action:
    | 'create_compute'
    | 'create_timeline'
    | 'start_compute'
    | 'suspend_compute'
    | 'apply_config'
    | 'check_availability'
    | 'delete_timeline'
    | 'create_branch'
    | 'tenant_ignore'
    | 'tenant_attach'
    | 'tenant_detach'
    | 'tenant_reattach'
    | 'replace_safekeeper'
    | 'disable_maintenance'
    | 'apply_storage_config'
    | 'prepare_secondary_pageserver'
    | 'switch_pageserver'
    | 'detach_parent_branch'
    | 'timeline_archive'
    | 'timeline_unarchive'
    | 'start_reserved_compute'
    | 'sync_dbs_and_roles_from_compute';
  /** `failed` is tried again; `finished`, `error`, `cancelled` and `skipped` are final. */
  readonly status: 'scheduling' | 'running' | 'finished' | 'failed' | 'error' | 'cancelling' | 'cancelled' | 'skipped';
  /** Why the last try failed. */
  readonly error?: string;
  /** Tries that failed so far. */
  readonly failures_count: number;
  /** When the next try is due. */
  readonly retry_at?: string;
  /** When it was queued. */
  readonly created_at: string;
  /** When its status last changed. */
  readonly updated_at: string;
  /** Milliseconds from queueing to the end. */
  readonly total_duration_ms: number;
}

/** Which libraries the server loads when it starts. */
export interface PreloadLibraries {
  /** Load the standard set as well. */
  readonly use_defaults?: boolean;
  /** Libraries to load at server start. */
  readonly enabled_libraries?: readonly string[];
}

/** Settings of one compute. */
export interface EndpointSettings {
  /** Postgres parameters by name, values as text. */
  readonly pg_settings?: Readonly<Record<string, string>>;
  /** Must be empty: the pooler has no parameters for a compute. */
  readonly pgbouncer_settings?: Readonly<Record<string, string>>;
  readonly preload_libraries?: PreloadLibraries;
}

/** What a compute gets that is created without saying otherwise. */
export interface DefaultEndpointSettings {
  /** Postgres parameters by name, values as text. */
  readonly pg_settings?: Readonly<Record<string, string>>;
  /** Must be empty: the pooler has no parameters for a compute. */
  readonly pgbouncer_settings?: Readonly<Record<string, string>>;
  /** Smallest size of a new compute. */
  readonly autoscaling_limit_min_cu?: number;
  /** Largest size of a new compute. */
  readonly autoscaling_limit_max_cu?: number;
  /** Seconds without activity before the compute naps: 0 is the default of 300, -1 is never. */
  readonly suspend_timeout_seconds?: number;
}

/**
 * What the project may use in a month; a quota that is used up suspends its computes. 0 is no limit.
 * logical_size_bytes bounds each branch by itself, whatever the month.
 */
export interface ProjectQuota {
  /** Seconds that computes may be awake. */
  readonly active_time_seconds?: number;
  /** Seconds that computes may be awake, times their size. */
  readonly compute_time_seconds?: number;
  /** Bytes of WAL that may be written. */
  readonly written_data_bytes?: number;
  /** Bytes that clients may be sent. */
  readonly data_transfer_bytes?: number;
  /** Bytes that one branch may hold before its writes are off. */
  readonly logical_size_bytes?: number;
}

/** From where clients may connect. */
export interface AllowedIps {
  /** Addresses, CIDR blocks or `a-b` ranges; empty lets everybody in. */
  readonly ips?: readonly string[];
  /** Apply to protected branches alone. */
  readonly protected_branches_only?: boolean;
}

/** When a compute that never sleeps is restarted, once, for an update that waits (`pending_update`). */
export interface MaintenanceWindow {
  /** The days on which it begins: 1 is Monday, 7 is Sunday. */
  readonly weekdays: readonly number[];
  /** HH:MM, UTC. */
  readonly start_time: string;
  /** HH:MM, UTC; a time before the start is one of the next day. */
  readonly end_time: string;
}

/** Settings of a whole project. */
export interface ProjectSettings {
  readonly quota?: ProjectQuota;
  readonly allowed_ips?: AllowedIps;
  /**
   * Servers run with `wal_level` `logical`, and roles made through the API may replicate and subscribe. Turning it on
   * restarts computes that are awake; once on it stays on.
   */
  readonly enable_logical_replication?: boolean;
  readonly maintenance_window?: MaintenanceWindow;
  /** Refuse clients whose address is neither loopback nor private, even if allowed_ips has it. */
  readonly block_public_connections?: boolean;
  /**
   * Let SQL in the computes (foreign servers, subscriptions) connect to the internet; to this machine and to private
   * networks only as far as the operator allows. A change restarts computes that are awake.
   */
  readonly allow_outbound_connections?: boolean;
  /** Only false: there are no VPC endpoints. */
  readonly block_vpc_connections?: boolean;
  /** Always refused: there is no audit log. */
  readonly audit_log_level?: 'base' | 'extended' | 'full';
  /** Only false. */
  readonly hipaa?: boolean;
  readonly preload_libraries?: PreloadLibraries;
}

/** The parts of a connection string. */
export interface ConnectionParameters {
  /** Database name. */
  readonly database: string;
  /** Password of the role. */
  readonly password: string;
  /** Role name. */
  readonly role: string;
  /** Host of the compute; carries a port when it is not 5432. */
  readonly host: string;
  /** Host of the pooled way in. */
  readonly pooler_host: string;
}

/** A connection string, whole and in parts. */
export interface ConnectionDetails {
  /** Paste into any Postgres client. */
  readonly connection_uri: string;
  readonly connection_parameters: ConnectionParameters;
}

/** A database of a branch. */
export interface Database {
  /** Number of the database. */
  readonly id: number;
  /** Id of the branch. */
  readonly branch_id: string;
  /** Name, unique in the branch. */
  readonly name: string;
  /** Role that owns it. */
  readonly owner_name: string;
  /** When it was made. */
  readonly created_at: string;
  /** When it last changed. */
  readonly updated_at: string;
}

/** A Postgres role of a branch. */
export interface Role {
  /** Id of the branch. */
  readonly branch_id: string;
  /** Name, unique in the branch. */
  readonly name: string;
  /** Only in the reply that made it. */
  readonly password?: string;
  /** Whether the role belongs to the system. */
  readonly protected?: boolean;
  /** How the role logs in. */
  readonly authentication_method?: 'password' | 'oauth' | 'no_login';
  /** When it was made. */
  readonly created_at: string;
  /** When it last changed. */
  readonly updated_at: string;
}

/** A Postgres server attached to a branch. */
export interface Endpoint {
  /** Id of the endpoint. */
  readonly id: string;
  /** Where clients connect; carries a port when it is not 5432. */
  readonly host: string;
  /** A label for people. */
  readonly name?: string;
  /** Id of the project. */
  readonly project_id: string;
  /** Id of the branch that it serves. */
  readonly branch_id: string;
  /** Smallest size in compute units (1 CU is 1 vCPU and 4 GB). */
  readonly autoscaling_limit_min_cu: number;
  /** Largest size; the same as the smallest for a fixed size. */
  readonly autoscaling_limit_max_cu: number;
  /** Region. */
  readonly region_id: string;
  /** `read_only` is a read replica. */
  readonly type: 'read_write' | 'read_only';
  /** `active`: a Postgres server answers. `idle`: none runs. `init`: never started yet. */
  readonly current_state: 'init' | 'active' | 'idle';
  /** The state it is on its way to, until the operations of a change have ended. */
  readonly pending_state?: 'init' | 'active' | 'idle';
  readonly settings: EndpointSettings;
  /** Whether its pooled host is open. */
  readonly pooler_enabled: boolean;
  /** The only mode. */
  readonly pooler_mode: 'transaction';
  /** A disabled compute refuses connections. */
  readonly disabled: boolean;
  /** Whether a person may let clients in without a password. */
  readonly passwordless_access: boolean;
  /** When a client last used it; absent before the first time. */
  readonly last_active?: string;
  /** What made it. */
  readonly creation_source: string;
  /** When it was made. */
  readonly created_at: string;
  /** When it last changed. */
  readonly updated_at: string;
  /** When it last woke. */
  readonly started_at?: string;
  /** When it last fell asleep. */
  readonly suspended_at?: string;
  /** The host without the endpoint’s own label. */
  readonly proxy_host: string;
  /** Seconds without activity before the compute naps: 0 is the default of 300, -1 is never. */
  readonly suspend_timeout_seconds: number;
  /** Kind of compute: `k8s-neonvm`, one that can autoscale. */
  readonly provisioner: string;
  /** Where queries that exceed memory spill to. An addition of Catnap. */
  readonly temporary_disk: {
    /** How much room its temporary files get. */
    readonly limit_bytes: number;
    /**
     * `disk`: all sessions share one bounded disk, and overrun is SQLSTATE 53100. `session`: Postgres bounds each
     * session for itself, and overrun is SQLSTATE 53400.
     */
    readonly enforcement: 'disk' | 'session';
  };
  /**
   * The size that it has now, between the smallest and the largest, while it is awake and its size is enforced. An
   * addition of Catnap.
   */
  readonly current_cu?: number;
  /**
   * Whether it is held to its size; false where control groups are not permitted, and then it uses what there is. An
   * addition of Catnap.
   */
  readonly limits_enforced: boolean;
  /** Server release while it is awake. */
  readonly compute_release_version?: string;
  /**
   * Of a read replica: what it had not replayed when last looked at, every few seconds while both it and its primary
   * are awake. An addition of Catnap.
   */
  readonly replication_lag_bytes?: number;
  /** The same, in time. */
  readonly replication_lag_seconds?: number;
  /** Present while the writes of a running compute are off. An addition of Catnap. */
  readonly writes_off?: {
    /** Its branch exceeds its size quota, or the machine has no room left. */
    readonly reason: 'size_quota' | 'disk_full';
    /** The quota that its branch exceeds, if it is that. */
    readonly quota?: 'logical_size_bytes';
    /**
     * `session`: transactions are read-only by default, which is SQLSTATE 25006 for writes; a session can lift that to
     * delete, and is ended if it makes the branch grow.
     */
    readonly enforcement: 'session';
    /** The same for people. */
    readonly description: string;
  };
  /** What keeps it awake, as the loop sees it that puts computes to sleep. An addition of Catnap. */
  readonly why_awake?: {
    /**
     * `recent_activity`: its timeout is not over. `never_suspends`: its setting. `operation`: one that needs it is
     * under way. The others: what the server said when it was last asked.
     */
    readonly reason:
      | 'recent_activity'
      | 'never_suspends'
      | 'query'
      | 'transaction'
      | 'background_worker'
      | 'replication'
      | 'operation';
    /** The same for people. */
    readonly description: string;
    /** When it falls asleep if nobody uses it; absent while that is not known. */
    readonly sleeps_at?: string;
    /** Server process. */
    readonly pid?: number;
    /** Whose session. */
    readonly role?: string;
    /** What the session calls itself. */
    readonly application_name?: string;
    /** Replication slot that the session uses. */
    readonly slot?: string;
    /** When that began. */
    readonly since?: string;
    /** When the server was last asked. */
    readonly observed_at?: string;
  };
  /** What the next start or a restart brings; an addition of Catnap’s. */
  readonly pending_update?: {
    /** A newer server release. */
    readonly compute_release_version?: string;
    /** What the plan allows by now. */
    readonly autoscaling_limit_max_cu?: number;
  };
}

/** A compute to make together with the branch. */
export interface BranchEndpointOptions {
  /** Kind of compute. */
  readonly type: 'read_write' | 'read_only';
  /** Smallest size; from the project’s defaults when left out. */
  readonly autoscaling_limit_min_cu?: number;
  /** Largest size; from the project’s defaults when left out. */
  readonly autoscaling_limit_max_cu?: number;
  /** Only `k8s-neonvm`. */
  readonly provisioner?: string;
  /** Seconds without activity before the compute naps: 0 is the default of 300, -1 is never. */
  readonly suspend_timeout_seconds?: number;
  readonly settings?: EndpointSettings;
}

/** A copy of the data with a life of its own. */
export interface Branch {
  /** Id of the branch. */
  readonly id: string;
  /** Id of the project. */
  readonly project_id: string;
  /** Id of the branch that it was made from. */
  readonly parent_id?: string;
  /** Point in the parent’s log that it was made at. */
  readonly parent_lsn?: string;
  /** Moment of the parent that it was made at. */
  readonly parent_timestamp?: string;
  /** Name, unique in the project. */
  readonly name: string;
  /** `init`, `resetting` or `ready`; nothing is ever archived here. */
  readonly current_state: string;
  /** The state it is on its way to. */
  readonly pending_state?: string;
  /** When the state last changed. */
  readonly state_changed_at: string;
  /** Bytes of data; absent until measured. */
  readonly logical_size?: number;
  /** Present if the project has such a quota. An addition of Catnap. */
  readonly size_quota?: {
    /** settings.quota.logical_size_bytes of the project. */
    readonly limit_bytes: number;
    /** Whether the branch is larger, so that its writes are turned off. */
    readonly exceeded: boolean;
  };
  /** What made it. */
  readonly creation_source: string;
  /** The older name of `default`. */
  readonly primary?: boolean;
  /** Whether this is the default branch of the project. */
  readonly default: boolean;
  /** A protected branch cannot be deleted. */
  readonly protected: boolean;
  /** CPU seconds used by its computes. */
  readonly cpu_used_sec: number;
  /** Seconds that its computes were awake, times their size. */
  readonly compute_time_seconds: number;
  /** Seconds that its computes were awake. */
  readonly active_time_seconds: number;
  /** Bytes written. */
  readonly written_data_bytes: number;
  /** Bytes sent to clients. */
  readonly data_transfer_bytes: number;
  /** When it was made. */
  readonly created_at: string;
  /** When it last changed. */
  readonly updated_at: string;
  /** Seconds from creation to expiry. */
  readonly ttl_interval_seconds?: number;
  /** When it deletes itself. */
  readonly expires_at?: string;
  /** When it was last restored. */
  readonly last_reset_at?: string;
  readonly created_by?: {
    readonly name?: string;
    readonly image?: string;
  };
  /** `parent-data` or `schema-only`. */
  readonly init_source?: string;
  /** `restored` from a snapshot, or `finalized`: in the place of another branch. */
  readonly restore_status?: string;
  /** Id of the snapshot that it was restored from. */
  readonly restored_from?: string;
  /** Id of the branch that it is to replace, or has replaced. */
  readonly restored_as?: string;
  /** How its data came to be. An addition of Catnap’s. */
  readonly receipt?: {
    /** `reflink`: it shares blocks with its source. `copy`: it is a full copy. */
    readonly method: string;
    /** Point of the source’s log that it was made at, where known. */
    readonly lsn?: string;
    /** Milliseconds that the copy took. */
    readonly duration_ms: number;
    /** Sizes of the files that were written anew, together. */
    readonly bytes_copied: number;
    /** Sizes of the files that shared their blocks with the source then, together. */
    readonly bytes_shared: number;
  };
  /**
   * Its logical replication slots, as its server last reported them; absent until then, and without logical
   * replication. An addition of Catnap.
   */
  readonly replication_slots?: readonly {
    /** Name of the slot. */
    readonly name: string;
    /** Output plugin. */
    readonly plugin: string;
    /** The database that it decodes. */
    readonly database: string;
    /** Whether a subscriber streams from it. */
    readonly active: boolean;
    /** `reserved`, `extended` or `unreserved`; `lost`: its subscriber cannot continue, and must start anew. */
    readonly wal_status: string;
    /** How much WAL is kept for it; absent for a lost one. */
    readonly retained_bytes?: number;
  }[];
  /** Of a deleted branch, in a list with `include_deleted`. */
  readonly recovery?: {
    /** When it was deleted. */
    readonly deleted_at: string;
    /** When it is removed for good. */
    readonly recoverable_until: string;
    /** `user`: by a request. `ttl`: it had expired. */
    readonly deletion_method: 'user' | 'ttl';
  };
  /** What cannot be done to it at the moment, and why. */
  readonly restricted_actions?: readonly {
    readonly name: string;
    readonly reason: string;
  }[];
}

/** Labels of a branch. */
export interface Annotation {
  readonly object: {
    readonly type: string;
    readonly id: string;
  };
  /** Free labels, at most 50. */
  readonly value: Readonly<Record<string, string>>;
  /** When the labels were first set. */
  readonly created_at?: string;
  /** When the labels last changed. */
  readonly updated_at?: string;
}

/** The data of a branch at one moment. It outlives the branch. */
export interface Snapshot {
  /** Id of the snapshot. */
  readonly id: string;
  /** Name; several snapshots can have the same. */
  readonly name: string;
  /** A name that is unique in the project; the id unless one was given. */
  readonly slug: string;
  /** Whether its data is there already. An addition of Catnap’s. */
  readonly status: 'creating' | 'ready';
  /** Position in the branch’s log that it holds, where known. */
  readonly lsn?: string;
  /** Moment that it holds; absent while it is made, and for one taken at an LSN. */
  readonly timestamp?: string;
  /** Id of the branch that it was taken of, which may be deleted. */
  readonly source_branch_id: string;
  /** When it was asked for. */
  readonly created_at: string;
  /** When it is deleted automatically. */
  readonly expires_at?: string;
  /** False for one that a schedule made. */
  readonly manual: boolean;
  /** Bytes of all its files. */
  readonly full_size?: number;
  /** Bytes of those that shared no blocks with their source when it was made. */
  readonly diff_size?: number;
}

/** A query that is kept with the project. An addition of Catnap’s. */
export interface SavedQuery {
  /** Id of the saved query. */
  readonly id: string;
  /** Name; several can have the same. */
  readonly name: string;
  /** The SQL, of up to 20,000 characters. */
  readonly query: string;
  /** Whether it is open as a tab in the console. */
  readonly is_open: boolean;
  /** Grows with each change. */
  readonly revision: number;
  /** When it was made. */
  readonly created_at: string;
  /** When it was last changed. */
  readonly updated_at: string;
}

/** An address that is told of events of the project. An addition of Catnap’s. */
export interface Webhook {
  /** Id of the webhook. */
  readonly id: string;
  /** Id of the project. */
  readonly project_id: string;
  /** Where events are sent to, by POST. https, and no private address unless the operator allows them. */
  readonly url: string;
  /** What it is told of. */
  readonly events: readonly ('operation.ended' | 'compute.woke' | 'quota.near' | 'backup.late')[];
  /** Whether events are sent to it. */
  readonly enabled: boolean;
  /** Since when nothing could be delivered; absent while all is well. After five days it is turned off. */
  readonly failing_since?: string;
  /** When it was made. */
  readonly created_at: string;
  /** When it was last changed. */
  readonly updated_at: string;
}

/** One event for one webhook. An addition of Catnap’s. */
export interface WebhookDelivery {
  /** Id of the delivery. */
  readonly id: string;
  /** Names what has happened; a replay has the same. Sent as `webhook-id`. */
  readonly event_id: string;
  /** What has happened. */
  readonly event: 'operation.ended' | 'compute.woke' | 'quota.near' | 'backup.late';
  /** Whether it will be tried again. */
  readonly status: 'pending' | 'delivered' | 'failed';
  /** How often it was sent. */
  readonly attempts: number;
  /** When it is sent again. */
  readonly next_attempt_at?: string;
  /** Status of the last reply; absent without one. */
  readonly response_status?: number;
  /** Why the last attempt failed. */
  readonly error?: string;
  /** The delivery that this one repeats. */
  readonly replay_of?: string;
  /** What was sent, byte for byte: JSON, as text. */
  readonly body: string;
  /** When it was recorded. */
  readonly created_at: string;
  /** When it was delivered, or given up. */
  readonly ended_at?: string;
}

/** A session of a compute’s server. An addition of Catnap’s. */
export interface Session {
  /** Id of the session: when it began and its pid, as Postgres writes it for `%c` in a log. */
  readonly id: string;
  /** Process id, as in `pg_stat_activity`. */
  readonly pid: number;
  /** Kind of the process: `client backend`, `autovacuum worker` and others. */
  readonly kind: string;
  /** The role that has logged in. */
  readonly role?: string;
  /** The database that it is in. */
  readonly database?: string;
  /** What the client calls itself. */
  readonly application_name?: string;
  /** `active`, `idle`, `idle in transaction` and others. */
  readonly state?: string;
  /** When it began. */
  readonly started_at: string;
  /** When its transaction began; absent outside one. */
  readonly transaction_started_at?: string;
  /** When the statement began that runs, or ran last. */
  readonly query_started_at?: string;
  /** Since when it has its state. */
  readonly state_changed_at?: string;
  /** The statement that runs, or ran last, as far as it is kept. */
  readonly query?: string;
  /** What it waits for, such as `Lock: transactionid`. */
  readonly wait?: string;
  /** Pids of those that it waits for; 0 is a prepared transaction. */
  readonly blocked_by: readonly number[];
  /** The lock that it waits for, such as `ShareLock on transactionid`. */
  readonly lock?: string;
  /** Since when it waits for the lock. */
  readonly waiting_since?: string;
  /** Of a parallel worker: the session that it works for. */
  readonly leader_pid?: number;
}

/** What is kept of a branch’s past. An addition of Catnap. */
export interface BranchHistory {
  /** history_retention_seconds of the project. */
  readonly retention_seconds: number;
  /** The first moment that can be given, those of its ancestors included. */
  readonly from?: string;
  /** Up to here everything is kept; what was written since follows within a minute. */
  readonly until?: string;
  /** The first position in the branch’s own log that can be given. */
  readonly from_lsn?: string;
  /** The last one. */
  readonly until_lsn?: string;
  /** Spans in between that are lost and cannot be given. */
  readonly gaps: readonly {
    /** Begin. */
    readonly from: string;
    /** End. */
    readonly until: string;
    /** Begin, as a position in the log. */
    readonly from_lsn: string;
    /** End, as a position in the log. */
    readonly until_lsn: string;
  }[];
  /** Base images. */
  readonly base_count: number;
  /** What base images take beyond the blocks that they share. */
  readonly base_bytes: number;
  /** What the write-ahead log between them takes. */
  readonly log_bytes: number;
}

/** Branches, computes and settings that belong together. */
export interface Project {
  /** Id of the project. */
  readonly id: string;
  /** What the computes run on. */
  readonly platform_id: string;
  /** Region. */
  readonly region_id: string;
  /** Name of the project. */
  readonly name: string;
  /** Kind of computes: `k8s-neonvm`, those that can autoscale. */
  readonly provisioner: string;
  readonly default_endpoint_settings?: DefaultEndpointSettings;
  readonly settings?: ProjectSettings;
  /** Postgres major version. */
  readonly pg_version: number;
  /** Host that all computes of the region share. */
  readonly proxy_host: string;
  /** Largest branch in MiB. */
  readonly branch_logical_size_limit: number;
  /** Largest branch in bytes. */
  readonly branch_logical_size_limit_bytes: number;
  /** Whether role passwords can be shown again. */
  readonly store_passwords: boolean;
  /** CPU seconds used by the computes. */
  readonly cpu_used_sec: number;
  /** What made it. */
  readonly creation_source: string;
  /** When it was made. */
  readonly created_at: string;
  /** When it last changed. */
  readonly updated_at: string;
  /** Bytes stored. */
  readonly synthetic_storage_size?: number;
  /** User or organization that owns it. */
  readonly owner_id: string;
  /** When a client last used one of its computes. */
  readonly compute_last_active_at?: string;
  /** Id of the organization. */
  readonly org_id?: string;
  /** Bytes stored, times hours. */
  readonly data_storage_bytes_hour: number;
  /** Bytes sent to clients. */
  readonly data_transfer_bytes: number;
  /** Bytes written. */
  readonly written_data_bytes: number;
  /** Seconds that computes were awake, times their size. */
  readonly compute_time_seconds: number;
  /** Seconds that computes were awake. */
  readonly active_time_seconds: number;
  /** Kept and shown, up to 30 days; there is no history yet. */
  readonly history_retention_seconds: number;
  /** Start of the period that is counted. */
  readonly consumption_period_start: string;
  /** End of the period that is counted. */
  readonly consumption_period_end: string;
  /** The same: when quotas start anew. */
  readonly quota_reset_at?: string;
  /** The quota that is used up, because of which no compute of the project may run. */
  readonly quota_exceeded?: {
    /** Which of settings.quota. */
    readonly name: string;
    /** The quota. */
    readonly limit: number;
    /** What was used of it in this period. */
    readonly used: number;
    /** When the next period begins. */
    readonly resets_at: string;
    /** What clients are told. */
    readonly message: string;
  };
  readonly owner?: {
    readonly email: string;
    readonly name: string;
    readonly branches_limit: number;
    readonly subscription_type: string;
  };
}

/** A project, as lists show it. */
export interface ProjectListItem {
  /** Id of the project. */
  readonly id: string;
  /** What the computes run on. */
  readonly platform_id: string;
  /** Region. */
  readonly region_id: string;
  /** Name of the project. */
  readonly name: string;
  /** Kind of computes: `k8s-neonvm`, those that can autoscale. */
  readonly provisioner: string;
  readonly default_endpoint_settings?: DefaultEndpointSettings;
  readonly settings?: ProjectSettings;
  /** Postgres major version. */
  readonly pg_version: number;
  /** Host that all computes of the region share. */
  readonly proxy_host: string;
  /** Largest branch in MiB. */
  readonly branch_logical_size_limit: number;
  /** Largest branch in bytes. */
  readonly branch_logical_size_limit_bytes: number;
  /** Whether role passwords can be shown again. */
  readonly store_passwords: boolean;
  /** CPU seconds used by the computes. */
  readonly cpu_used_sec: number;
  /** What made it. */
  readonly creation_source: string;
  /** When it was made. */
  readonly created_at: string;
  /** When it last changed. */
  readonly updated_at: string;
  /** Bytes stored. */
  readonly synthetic_storage_size?: number;
  /** User or organization that owns it. */
  readonly owner_id: string;
  /** When a client last used one of its computes. */
  readonly compute_last_active_at?: string;
  /** Id of the organization. */
  readonly org_id?: string;
  /** Seconds that computes were awake. */
  readonly active_time: number;
  /** Kept and shown, up to 30 days; there is no history yet. */
  readonly history_retention_seconds?: number;
  /** Name of the organization. */
  readonly org_name?: string;
  /** Branches that it has; not in a list of recoverable projects, as the next two. */
  readonly branches_count?: number;
  /** Computes of all its branches, replicas included. */
  readonly endpoints_count?: number;
  /** Of those, computes that are awake. */
  readonly active_endpoints_count?: number;
  /** When it was deleted; only in a list of recoverable projects, as the next one. */
  readonly deleted_at?: string;
  /** When it is removed for good. */
  readonly recoverable_until?: string;
}

/** A deleted project or branch. */
export interface DeletedThing {
  /** What was deleted. */
  readonly kind: 'project' | 'branch';
  /** Id of the project, or the project of the branch. */
  readonly project_id: string;
  /** Name of that project. */
  readonly project_name: string;
  /** Id of the branch. */
  readonly branch_id?: string;
  /** Name of what was deleted. */
  readonly name: string;
  /** Bytes of data, of a project in all its branches; absent if never measured. */
  readonly logical_size?: number;
  /** When it was deleted. */
  readonly deleted_at: string;
  /** When it is removed for good. */
  readonly recoverable_until: string;
  /** `user`: by a request. `ttl`: it had expired. */
  readonly deletion_method: 'user' | 'ttl';
}

/** A provider whose tokens log in over HTTP. */
export interface JWKS {
  /** Id of the key set. */
  readonly id: string;
  /** Id of the project. */
  readonly project_id: string;
  /** Id of the branch. */
  readonly branch_id?: string;
  /** Address of the provider’s JSON Web Key Set. */
  readonly jwks_url: string;
  /** Name of the provider, for people. */
  readonly provider_name: string;
  /** What `aud` of a token must contain. */
  readonly jwt_audience?: string;
  /** Roles that its tokens may log in as. */
  readonly role_names: readonly string[];
  /** When it was added. */
  readonly created_at: string;
  /** When it last changed. */
  readonly updated_at: string;
}

/** A key, without its secret. */
export interface ApiKey {
  /** Number of the key. */
  readonly id: number;
  /** Name of the key. */
  readonly name: string;
  /** When it was made. */
  readonly created_at: string;
  readonly created_by: {
    readonly id: string;
    readonly name: string;
    readonly image: string;
  };
  /** When it was last used; null before the first time. Up to a minute behind. */
  readonly last_used_at: string | null;
  /** Address that last used it, or empty. */
  readonly last_used_from_addr: string;
  /** Id of the only project that the key reaches. */
  readonly project_id?: string;
  /**
   * What the key may do with what it reaches, an addition of Catnap’s: everything (`full`); read all but secrets
   * (`read_only`); that, and make branches and change those that are neither default nor protected (`branches`); find
   * databases and get their connection strings (`sql`).
   */
  readonly scope: 'full' | 'read_only' | 'branches' | 'sql';
  /** From then on the key does not work, an addition of Catnap’s. Absent is never. */
  readonly expires_at?: string;
}

/** A new key. */
export interface ApiKeyCreated {
  /** Number of the key. */
  readonly id: number;
  /** The secret. It is not shown again. */
  readonly key: string;
  /** Name of the key. */
  readonly name: string;
  /** When it was made. */
  readonly created_at: string;
  /** User who made it. */
  readonly created_by: string;
  /** Id of the only project that the key reaches. */
  readonly project_id?: string;
  /**
   * What the key may do with what it reaches, an addition of Catnap’s: everything (`full`); read all but secrets
   * (`read_only`); that, and make branches and change those that are neither default nor protected (`branches`); find
   * databases and get their connection strings (`sql`).
   */
  readonly scope: 'full' | 'read_only' | 'branches' | 'sql';
  /** From then on the key does not work, an addition of Catnap’s. Absent is never. */
  readonly expires_at?: string;
}

/** A key that no longer works. */
export interface ApiKeyRevoked {
  /** Number of the key. */
  readonly id: number;
  /** Name of the key. */
  readonly name: string;
  /** When it was made. */
  readonly created_at: string;
  /** User who made it. */
  readonly created_by: string;
  /** When it was last used; null before the first time. Up to a minute behind. */
  readonly last_used_at: string | null;
  /** Address that last used it, or empty. */
  readonly last_used_from_addr: string;
  /** True from now on. */
  readonly revoked: boolean;
  /** Id of the only project that the key reaches. */
  readonly project_id?: string;
  /** Present when it was the last personal key: how to get a new one. */
  readonly warning?: string;
}

/** Beta. What ties a project to an auth provider. */
export interface NeonAuthIntegration {
  /** The auth provider; `stack` is the only one. */
  readonly auth_provider: 'stack';
  /** Id of the project at the provider. */
  readonly auth_provider_project_id: string;
  /** Id of the branch whose database has the users. */
  readonly branch_id: string;
  /** Database that has the users. */
  readonly db_name: string;
  /** When it was made. */
  readonly created_at: string;
  /** Who owns the project at the provider: `neon` is Catnap, `user` whoever took it over. */
  readonly owned_by: 'neon' | 'user';
  /** How far a transfer of ownership is. */
  readonly transfer_status?: 'initiated' | 'finished';
  /** Keys that the tokens of its users verify with. */
  readonly jwks_url: string;
  /** Address of the provider, for the SDK’s `baseUrl`. */
  readonly base_url?: string;
  /** When its users were last brought up to date in the database. */
  readonly users_synced_at?: string;
  /** Why the users could not be copied into the database. Tried again with pauses. */
  readonly users_sync_error?: string;
  /** Why the users could not be read from a provider elsewhere. Tried again with pauses. */
  readonly users_provider_error?: string;
}

/** A user in an organization. */
export interface Member {
  /** Id of the member: that of its user. */
  readonly id: string;
  /** Id of the user. */
  readonly user_id: string;
  /** Id of the organization. */
  readonly org_id: string;
  /** What the member may do; admin is everything. */
  readonly role: string;
  /** When the user became a member. */
  readonly joined_at: string;
}

/** Owns projects; users are its members. */
export interface Organization {
  /** Id of the organization. */
  readonly id: string;
  /** Name. */
  readonly name: string;
  /** Short name. */
  readonly handle: string;
  /** Plan that its limits come from. */
  readonly plan: string;
  /** When it was made. */
  readonly created_at: string;
  /** What manages it. */
  readonly managed_by: string;
  /** When it last changed. */
  readonly updated_at: string;
}

/** The user that the key belongs to. */
export interface CurrentUser {
  /** Id of the user. */
  readonly id: string;
  /** Login name. */
  readonly login: string;
  /** Address. */
  readonly email: string;
  /** First name. */
  readonly name: string;
  /** Last name. */
  readonly last_name: string;
  /** URL of a picture, or empty. */
  readonly image: string;
  /** Plan of the account. */
  readonly plan: string;
  /** Projects that the plan allows. */
  readonly projects_limit: number;
  /** Branches of one project that the plan allows. */
  readonly branches_limit: number;
  /** Largest compute in units; 0 is no limit. */
  readonly max_autoscaling_limit: number;
  /** Awake seconds that the plan allows; 0 is no limit. */
  readonly active_seconds_limit: number;
  readonly auth_accounts: readonly {
    /** Address. */
    readonly email: string;
    /** URL of a picture, or empty. */
    readonly image: string;
    /** Login name. */
    readonly login: string;
    /** Name. */
    readonly name: string;
    /** Where the login comes from. */
    readonly provider: string;
  }[];
  /** Nothing is billed; the record exists because clients read it. */
  readonly billing_account: {
    /** Always active. */
    readonly state: string;
    readonly payment_source: {
      /** Always empty. */
      readonly type: string;
    };
    /** The plan, in words that clients know. */
    readonly subscription_type: string;
    /** Always none. */
    readonly payment_method: string;
    /** Start of the current period. */
    readonly quota_reset_at_last: string;
    /** Name of the account. */
    readonly name: string;
    /** Address of the account. */
    readonly email: string;
    /** Empty. */
    readonly address_city: string;
    /** Empty. */
    readonly address_country: string;
    /** Empty. */
    readonly address_line1: string;
    /** Empty. */
    readonly address_line2: string;
    /** Empty. */
    readonly address_postal_code: string;
    /** Empty. */
    readonly address_state: string;
  };
}

export interface ListProjectsReply {
  readonly projects: readonly ProjectListItem[];
  readonly pagination?: Pagination;
  /** By project id; empty, because nothing outside is connected. */
  readonly applications: Readonly<Record<string, readonly string[]>>;
  /** By project id; empty, because nothing outside is connected. */
  readonly integrations: Readonly<Record<string, readonly string[]>>;
}

export interface CreateProjectReply {
  readonly project: Project;
  readonly connection_uris: readonly ConnectionDetails[];
  readonly roles: readonly Role[];
  readonly databases: readonly Database[];
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
  readonly branch: Branch;
  readonly endpoints: readonly Endpoint[];
}

export interface ListSharedProjectsReply {
  readonly projects: readonly ProjectListItem[];
  readonly pagination?: Pagination;
}

export interface UpdateProjectReply {
  readonly project: Project;
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export interface DeleteProjectReply {
  readonly project: Project;
}

export interface GetProjectReply {
  readonly project: Project;
}

export interface GetConnectionURIReply {
  /** Connection string with the password in it. */
  readonly uri: string;
}

export interface ListDeletedReply {
  readonly deleted: readonly DeletedThing[];
}

export interface RecoverProjectReply {
  readonly project: Project;
  readonly branches: readonly Branch[];
}

export interface PurgeProjectReply {
  readonly project: Project;
}

export interface RecoverProjectBranchReply {
  readonly branch: Branch;
  readonly endpoints: readonly Endpoint[];
}

export interface PurgeProjectBranchReply {
  readonly branch: Branch;
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export interface GetProjectJWKSReply {
  readonly jwks: readonly JWKS[];
}

export interface AddProjectJWKSReply {
  readonly jwks: JWKS;
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export type DeleteProjectJWKSReply = JWKS;

export interface ListProjectBranchesReply {
  readonly branches: readonly Branch[];
  /** Labels by branch id. */
  readonly annotations: Readonly<Record<string, Annotation>>;
  readonly pagination?: CursorPagination;
}

export interface CreateProjectBranchReply {
  readonly branch: Branch;
  readonly endpoints: readonly Endpoint[];
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
  readonly roles: readonly Role[];
  readonly databases: readonly Database[];
  /** Left out when there is more than one to choose from. */
  readonly connection_uris?: readonly ConnectionDetails[];
}

export interface CountProjectBranchesReply {
  /** Number of branches. */
  readonly count: number;
}

export interface UpdateProjectBranchReply {
  readonly branch: Branch;
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export interface DeleteProjectBranchReply {
  readonly branch: Branch;
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export interface GetProjectBranchReply {
  readonly branch: Branch;
  readonly annotation: Annotation;
}

export interface SetDefaultProjectBranchReply {
  readonly branch: Branch;
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export interface SetPrimaryProjectBranchReply {
  readonly branch: Branch;
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export interface GetProjectBranchSchemaReply {
  /** Statements that make the schema. */
  readonly sql: string;
}

export interface GetProjectBranchSchemaComparisonReply {
  /** Unified diff from the base to the branch; empty when they are the same. */
  readonly diff: string;
}

export interface GetProjectBranchHistoryReply {
  readonly history: BranchHistory;
}

export interface RestoreProjectBranchReply {
  readonly branch: Branch;
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export interface ListSnapshotsReply {
  readonly snapshots: readonly Snapshot[];
}

export interface CreateSnapshotReply {
  readonly snapshot: Snapshot;
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export interface UpdateSnapshotReply {
  readonly snapshot: Snapshot;
}

export interface DeleteSnapshotReply {
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export interface RestoreSnapshotReply {
  readonly branch: Branch;
  /** A new compute, asleep, to look at the data with; or those that will move to the branch. */
  readonly endpoints: readonly Endpoint[];
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export interface FinalizeRestoreBranchReply {
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export interface GetSnapshotScheduleReply {
  readonly schedule: readonly {
    /** How often. */
    readonly frequency: 'hourly' | 'daily' | 'weekly' | 'monthly' | 'yearly';
    /** Hour in UTC; 0 when left out. */
    readonly hour?: number;
    /** Weekly: 1 (Monday, also when left out) to 7. Monthly and yearly: day of the month, or its last. */
    readonly day?: number;
    /** Yearly; 1 when left out. */
    readonly month?: number;
    /** For how long a snapshot is kept; for good when left out. */
    readonly retention_seconds?: number;
  }[];
  /** When the next snapshot is due. An addition of Catnap’s. */
  readonly next_at?: string;
  /** Why the last one could not be made. An addition of Catnap’s. */
  readonly error?: string;
}

export type SetSnapshotScheduleReply = Readonly<Record<string, unknown>>;

export interface ListProjectSavedQueriesReply {
  readonly saved_queries: readonly SavedQuery[];
}

export interface CreateProjectSavedQueryReply {
  readonly saved_query: SavedQuery;
}

export interface UpdateProjectSavedQueryReply {
  readonly saved_query: SavedQuery;
}

export interface DeleteProjectSavedQueryReply {
  readonly saved_query: SavedQuery;
}

export interface ListProjectWebhooksReply {
  readonly webhooks: readonly Webhook[];
}

export interface CreateProjectWebhookReply {
  readonly webhook: Webhook;
  /** What deliveries are signed with. It is not shown again. */
  readonly secret: string;
}

export interface UpdateProjectWebhookReply {
  readonly webhook: Webhook;
}

export interface DeleteProjectWebhookReply {
  readonly webhook: Webhook;
}

export interface ListProjectWebhookDeliveriesReply {
  readonly deliveries: readonly WebhookDelivery[];
}

export interface ReplayProjectWebhookDeliveryReply {
  readonly delivery: WebhookDelivery;
}

export interface ListProjectEndpointsReply {
  readonly endpoints: readonly Endpoint[];
}

export interface CreateProjectEndpointReply {
  readonly endpoint: Endpoint;
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export interface ListProjectBranchEndpointsReply {
  readonly endpoints: readonly Endpoint[];
}

export interface GetProjectEndpointReply {
  readonly endpoint: Endpoint;
}

export interface UpdateProjectEndpointReply {
  readonly endpoint: Endpoint;
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export interface DeleteProjectEndpointReply {
  readonly endpoint: Endpoint;
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export interface StartProjectEndpointReply {
  readonly endpoint: Endpoint;
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export interface SuspendProjectEndpointReply {
  readonly endpoint: Endpoint;
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export interface RestartProjectEndpointReply {
  readonly endpoint: Endpoint;
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export interface ListProjectEndpointLogsReply {
  /** The newest at the end. */
  readonly logs: readonly {
    /** When it was written. */
    readonly at?: string;
    /**
     * `server`: a process of the server that runs nothing of tenants. `session`: any other process; whoever may log in
     * can have chosen its text. `catnap`: Catnap itself. `unknown`: a line that did not come through the log.
     */
    readonly source: 'server' | 'session' | 'catnap' | 'unknown';
    /** Kind of the process, such as `client backend`. */
    readonly process?: string;
    /** Its process id, as in `pg_stat_activity`. */
    readonly pid?: number;
    /** Severity, such as `LOG` or `FATAL`. */
    readonly level?: string;
    /** The text, with details and hints on lines of their own. */
    readonly message: string;
  }[];
}

export interface ListProjectEndpointSessionsReply {
  /** Whether the compute runs; asleep it has no sessions. */
  readonly is_awake: boolean;
  /** When it was asked, for durations. */
  readonly read_at: string;
  /** Those that do something first, the longest at the top; at most 500. */
  readonly sessions: readonly Session[];
}

export type CancelProjectEndpointSessionReply = Readonly<Record<string, unknown>>;

export type TerminateProjectEndpointSessionReply = Readonly<Record<string, unknown>>;

export interface GetProjectEndpointMetricsReply {
  /** Id of the compute. */
  readonly endpoint_id: string;
  /** Begin. */
  readonly from: string;
  /** End. */
  readonly to: string;
  /** Seconds between points. */
  readonly step_seconds: number;
  /** Oldest first. Kept for 7 days, coarser with age. */
  readonly samples: readonly {
    /** Begin of the step. Steps in which it slept are left out. */
    readonly at: string;
    /** Size; absent where sizes are not enforced. */
    readonly cu?: number;
    /** Cores in use. */
    readonly cpu_cores?: number;
    /** Memory in use, without cache. */
    readonly memory_bytes: number;
    /** Page cache of its files. */
    readonly cache_bytes: number;
    /** The part of the cache that is used again and again. */
    readonly working_set_bytes: number;
    /** Sessions that ran a statement. */
    readonly connections_active?: number;
    /** Sessions that did not. */
    readonly connections_idle?: number;
    /** `max_connections`. */
    readonly connections_max?: number;
    /** Committed and rolled back. */
    readonly transactions_per_second?: number;
    /** Of the blocks that were asked for, those found in shared buffers: 0 to 1. */
    readonly cache_hit_ratio?: number;
    /** Of a read replica. */
    readonly replication_lag_bytes?: number;
    /** All databases of its branch. */
    readonly database_size_bytes?: number;
  }[];
  /** Steps of the autoscaler, oldest first. */
  readonly size_changes: readonly {
    /** When. */
    readonly at: string;
    /** Size before. */
    readonly from_cu: number;
    /** Size after. */
    readonly to_cu: number;
    /** Why, in words. */
    readonly reason: string;
  }[];
}

export interface GetConsumptionHistoryPerProjectReply {
  readonly projects: readonly {
    /** Id of the project. */
    readonly project_id: string;
    readonly periods: readonly {
      /** Names the month of this subject. */
      readonly period_id: string;
      /** Plan of the organization. */
      readonly period_plan: string;
      /** Begin of the month. */
      readonly period_start: string;
      /** End of the month, once it is over. */
      readonly period_end?: string;
      /** Oldest first. */
      readonly consumption: readonly {
        /** Begin. */
        readonly timeframe_start: string;
        /** End. */
        readonly timeframe_end: string;
        /** Seconds that computes were awake. */
        readonly active_time_seconds: number;
        /** CPU seconds that computes used. */
        readonly compute_time_seconds: number;
        /** WAL that was written. */
        readonly written_data_bytes: number;
        /** Bytes that were sent to clients. */
        readonly data_transfer_bytes: number;
        /** Largest logical size of a branch. */
        readonly synthetic_storage_size_bytes: number;
        /** Storage, in bytes times hours. */
        readonly data_storage_bytes_hour: number;
        /** Largest logical size of a branch. */
        readonly logical_size_bytes: number;
        /** Storage, in bytes times hours. */
        readonly logical_size_bytes_hour: number;
      }[];
    }[];
  }[];
  readonly pagination?: Pagination;
}

export interface GetConsumptionHistoryPerProjectV2Reply {
  readonly projects: readonly {
    /** Id of the project. */
    readonly project_id: string;
    readonly periods: readonly {
      /** Names the month of this subject. */
      readonly period_id: string;
      /** Plan of the organization. */
      readonly period_plan: string;
      /** Begin of the month. */
      readonly period_start: string;
      /** End of the month, once it is over. */
      readonly period_end?: string;
      /** Oldest first. */
      readonly consumption: readonly {
        /** Begin. */
        readonly timeframe_start: string;
        /** End. */
        readonly timeframe_end: string;
        /** Those of the wanted ones that are measured here. */
        readonly metrics: readonly {
          /** Which. */
          readonly metric_name: string;
          /** How much. */
          readonly value: number;
        }[];
      }[];
    }[];
  }[];
  readonly pagination?: Pagination;
}

export interface GetConsumptionHistoryPerBranchV2Reply {
  readonly branches: readonly {
    /** Id of the project. */
    readonly project_id: string;
    /** Id of the branch. */
    readonly branch_id: string;
    readonly periods: readonly {
      /** Names the month of this subject. */
      readonly period_id: string;
      /** Plan of the organization. */
      readonly period_plan: string;
      /** Begin of the month. */
      readonly period_start: string;
      /** End of the month, once it is over. */
      readonly period_end?: string;
      /** Oldest first. */
      readonly consumption: readonly {
        /** Begin. */
        readonly timeframe_start: string;
        /** End. */
        readonly timeframe_end: string;
        /** Those of the wanted ones that are measured here. */
        readonly metrics: readonly {
          /** Which. */
          readonly metric_name: string;
          /** How much. */
          readonly value: number;
        }[];
      }[];
    }[];
  }[];
  readonly pagination?: Pagination;
}

export interface ListProjectBranchDatabasesReply {
  readonly databases: readonly Database[];
}

export interface CreateProjectBranchDatabaseReply {
  readonly database: Database;
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export interface GetProjectBranchDatabaseReply {
  readonly database: Database;
}

export interface UpdateProjectBranchDatabaseReply {
  readonly database: Database;
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export interface DeleteProjectBranchDatabaseReply {
  readonly database: Database;
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export interface ListProjectBranchRolesReply {
  readonly roles: readonly Role[];
}

export interface CreateProjectBranchRoleReply {
  readonly role: Role;
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export interface GetProjectBranchRoleReply {
  readonly role: Role;
}

export interface DeleteProjectBranchRoleReply {
  readonly role: Role;
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export interface GetProjectBranchRolePasswordReply {
  /** Password of the role. */
  readonly password: string;
}

export interface RevealProjectBranchRolePasswordReply {
  /** Password of the role. */
  readonly password: string;
}

export interface ResetProjectBranchRolePasswordReply {
  readonly role: Role;
  /** Work that the request queued, in order; the resource is ready when the last one is finished. */
  readonly operations: readonly Operation[];
}

export interface ListProjectBranchRoleVerifiersReply {
  readonly roles: readonly {
    /** Name of the role. */
    readonly name: string;
    /** SCRAM-SHA-256 verifier of its password; absent when it cannot log in. */
    readonly verifier?: string;
  }[];
}

export interface ListProjectOperationsReply {
  readonly operations: readonly Operation[];
  readonly pagination?: Pagination;
}

export interface GetProjectOperationReply {
  readonly operation: Operation;
}

export type ListApiKeysReply = readonly ApiKey[];

export type CreateApiKeyReply = ApiKeyCreated;

export type RevokeApiKeyReply = ApiKeyRevoked;

export type ListOrgApiKeysReply = readonly ApiKey[];

export type CreateOrgApiKeyReply = ApiKeyCreated;

export type RevokeOrgApiKeyReply = ApiKeyRevoked;

/** Beta. A fresh pair of SDK keys. */
export interface CreateNeonAuthIntegrationReply {
  /** The auth provider; `stack` is the only one. */
  readonly auth_provider: 'stack';
  /** Id of the project at the provider. */
  readonly auth_provider_project_id: string;
  /** Publishable key, for browsers. */
  readonly pub_client_key: string;
  /** Secret key, for servers. It is not shown again. */
  readonly secret_server_key: string;
  /** Keys that the tokens of its users verify with. */
  readonly jwks_url: string;
  /** Schema of the table of users. */
  readonly schema_name: string;
  /** Table of users. */
  readonly table_name: string;
  /** Address of the provider, for the SDK’s `baseUrl`. */
  readonly base_url?: string;
}

/** Beta. A fresh pair of SDK keys. */
export interface CreateNeonAuthReply {
  /** The auth provider; `stack` is the only one. */
  readonly auth_provider: 'stack';
  /** Id of the project at the provider. */
  readonly auth_provider_project_id: string;
  /** Publishable key, for browsers. */
  readonly pub_client_key: string;
  /** Secret key, for servers. It is not shown again. */
  readonly secret_server_key: string;
  /** Keys that the tokens of its users verify with. */
  readonly jwks_url: string;
  /** Schema of the table of users. */
  readonly schema_name: string;
  /** Table of users. */
  readonly table_name: string;
  /** Address of the provider, for the SDK’s `baseUrl`. */
  readonly base_url?: string;
}

export type GetNeonAuthReply = NeonAuthIntegration;

export interface ListNeonAuthIntegrationsReply {
  readonly data: readonly NeonAuthIntegration[];
}

/** Beta. A fresh pair of SDK keys. */
export interface CreateNeonAuthProviderSDKKeysReply {
  /** The auth provider; `stack` is the only one. */
  readonly auth_provider: 'stack';
  /** Id of the project at the provider. */
  readonly auth_provider_project_id: string;
  /** Publishable key, for browsers. */
  readonly pub_client_key: string;
  /** Secret key, for servers. It is not shown again. */
  readonly secret_server_key: string;
  /** Keys that the tokens of its users verify with. */
  readonly jwks_url: string;
  /** Schema of the table of users. */
  readonly schema_name: string;
  /** Table of users. */
  readonly table_name: string;
  /** Address of the provider, for the SDK’s `baseUrl`. */
  readonly base_url?: string;
}

export interface TransferNeonAuthProviderProjectReply {
  /** Page on which to choose who takes the project over; good for an hour, once. */
  readonly url: string;
}

export interface CreateNeonAuthNewUserReply {
  /** Id of the new user. */
  readonly id: string;
}

export interface CreateBranchNeonAuthNewUserReply {
  /** Id of the new user. */
  readonly id: string;
}

export interface ListNeonAuthRedirectURIWhitelistDomainsReply {
  readonly domains: readonly {
    /** Origin, such as https://app.example.com. */
    readonly domain: string;
    /** The auth provider; `stack` is the only one. */
    readonly auth_provider: 'stack';
  }[];
}

export interface ListNeonAuthOauthProvidersReply {
  readonly providers: readonly {
    /** `google`, `github`, `microsoft`, `vercel`, or one that the operator has named an issuer for. */
    readonly id: string;
    /** `standard` has credentials of your own. `shared` exists only at an auth provider elsewhere. */
    readonly type: 'standard' | 'shared';
    /** Client id. */
    readonly client_id?: string;
    /** Client secret. */
    readonly client_secret?: string;
  }[];
}

export interface AddNeonAuthOauthProviderReply {
  /** `google`, `github`, `microsoft`, `vercel`, or one that the operator has named an issuer for. */
  readonly id: string;
  /** `standard` has credentials of your own. `shared` exists only at an auth provider elsewhere. */
  readonly type: 'standard' | 'shared';
  /** Client id. */
  readonly client_id?: string;
  /** Client secret. */
  readonly client_secret?: string;
}

export interface UpdateNeonAuthOauthProviderReply {
  /** `google`, `github`, `microsoft`, `vercel`, or one that the operator has named an issuer for. */
  readonly id: string;
  /** `standard` has credentials of your own. `shared` exists only at an auth provider elsewhere. */
  readonly type: 'standard' | 'shared';
  /** Client id. */
  readonly client_id?: string;
  /** Client secret. */
  readonly client_secret?: string;
}

export interface ListBranchNeonAuthTrustedDomainsReply {
  readonly domains: readonly {
    /** Origin, such as https://app.example.com. */
    readonly domain: string;
    /** The auth provider; `stack` is the only one. */
    readonly auth_provider: 'stack';
  }[];
}

export interface ListBranchNeonAuthOauthProvidersReply {
  readonly providers: readonly {
    /** `google`, `github`, `microsoft`, `vercel`, or one that the operator has named an issuer for. */
    readonly id: string;
    /** `standard` has credentials of your own. `shared` exists only at an auth provider elsewhere. */
    readonly type: 'standard' | 'shared';
    /** Client id. */
    readonly client_id?: string;
    /** Client secret. */
    readonly client_secret?: string;
  }[];
}

export interface AddBranchNeonAuthOauthProviderReply {
  /** `google`, `github`, `microsoft`, `vercel`, or one that the operator has named an issuer for. */
  readonly id: string;
  /** `standard` has credentials of your own. `shared` exists only at an auth provider elsewhere. */
  readonly type: 'standard' | 'shared';
  /** Client id. */
  readonly client_id?: string;
  /** Client secret. */
  readonly client_secret?: string;
}

export interface UpdateBranchNeonAuthOauthProviderReply {
  /** `google`, `github`, `microsoft`, `vercel`, or one that the operator has named an issuer for. */
  readonly id: string;
  /** `standard` has credentials of your own. `shared` exists only at an auth provider elsewhere. */
  readonly type: 'standard' | 'shared';
  /** Client id. */
  readonly client_id?: string;
  /** Client secret. */
  readonly client_secret?: string;
}

export type GetCurrentUserInfoReply = CurrentUser;

export interface GetCurrentUserOrganizationsReply {
  readonly organizations: readonly Organization[];
}

export type GetOrganizationReply = Organization;

export type UpdateOrganizationReply = Organization;

export interface GetActiveRegionsReply {
  readonly regions: readonly {
    /** What `region_id` of a new project may be. */
    readonly region_id: string;
    /** Name for people. */
    readonly name: string;
    /** Used when a request names none. */
    readonly default: boolean;
    /** Latitude, as text. */
    readonly geo_lat: string;
    /** Longitude, as text. */
    readonly geo_long: string;
  }[];
}

export interface GetAuthDetailsReply {
  /** User or organization that the key belongs to. */
  readonly account_id: string;
  /** A personal key, or a key of an organization (also when it is limited to one project). */
  readonly auth_method: 'api_key_user' | 'api_key_org';
  /** Number of the key. */
  readonly auth_data?: string;
  /** What the key may do, an addition of Catnap’s. */
  readonly scope: 'full' | 'read_only' | 'branches' | 'sql';
  /** Id of the only project that the key reaches, an addition of Catnap’s. */
  readonly project_id?: string;
  /** When the key stops working, an addition of Catnap’s; absent is never. */
  readonly expires_at?: string;
}

export interface ListOutboxReply {
  readonly mails: readonly {
    /** Rises with time. */
    readonly id: number;
    /** The project at the provider. */
    readonly auth_provider_project_id: string;
    /** Its name. */
    readonly auth_provider_project_name: string;
    /** password_reset or email_verification. */
    readonly kind: string;
    /** The recipient. */
    readonly to: string;
    /** As the recipient sees it. */
    readonly subject: string;
    /** The whole mail, with its link. */
    readonly text: string;
    /** stored (nothing was tried), sent, retrying or failed. */
    readonly status: string;
    /** What the mail server said last. */
    readonly error?: string;
    /** When it was written. */
    readonly created_at: string;
  }[];
}

export interface GetBackupReply {
  /** `off` without CATNAP_BACKUP_URL; `failing` while nothing can be uploaded. */
  readonly state: 'off' | 'ok' | 'behind' | 'failing';
  /** What the operator must know, the most urgent first. */
  readonly alerts: readonly string[];
  /** The store. */
  readonly url: string | null;
  /** When the uploader last said how it fares. */
  readonly reported_at: string | null;
  /** When everything that it tried last succeeded. */
  readonly succeeded_at: string | null;
  /** Since when uploads fail. */
  readonly failing_since: string | null;
  /** What is not uploaded yet, of all branches. */
  readonly waiting_bytes: number;
  /** What the store keeps. */
  readonly stored_bytes: number;
  /** When a restore was last tried out. */
  readonly verified_at: string | null;
  /** Whether everything was right. */
  readonly verified_ok: boolean | null;
  /** What was checked and found. */
  readonly verification: string | null;
  /** Each branch’s past, each snapshot, and the system database’s past. */
  readonly histories: readonly {
    /** Names the history in the store. */
    readonly history_id: string;
    /** Its project, or `system` for the system database. */
    readonly project_id: string;
    /** Null where the project is gone, and for the system database. */
    readonly project_name: string | null;
    /** The branch whose past it is, or that the snapshot was taken of. */
    readonly branch_id: string;
    /** Null where the branch is gone, and for the system database. */
    readonly branch_name: string | null;
    /** The snapshot whose data it is; null for the past of a branch. */
    readonly snapshot_id: string | null;
    /** Null where the snapshot is gone, and for the past of a branch. */
    readonly snapshot_name: string | null;
    /** The first moment that the store can give; null while it can give none. */
    readonly stored_from: string | null;
    /** The last moment that the store can give. */
    readonly stored_until: string | null;
    /** Where the log of the store ends. */
    readonly stored_lsn: string | null;
    /**
     * For how long the machine has had log that the store lacks, 0 if it lacks none; null without a moment to compare.
     */
    readonly behind_seconds: number | null;
    /** Log and base images that are not uploaded yet. */
    readonly waiting_bytes: number;
    /** What the store keeps of it, compressed and encrypted. */
    readonly stored_bytes: number;
    /** Base images in the store. */
    readonly base_count: number;
    /** Spans of time that were lost before they could be uploaded. */
    readonly gap_count: number;
    /** Why it cannot be uploaded at the moment. */
    readonly problem: string | null;
    /** Since when only the store has it; a week later the store drops it. */
    readonly gone_since: string | null;
  }[];
  /** When this was read. */
  readonly read_at: string;
}

export interface GetOrganizationMembersReply {
  readonly members: readonly {
    readonly member: Member;
    readonly user: {
      /** Address. */
      readonly email: string;
    };
  }[];
  readonly pagination: CursorPagination;
}

export type GetOrganizationMemberReply = Member;

export interface ListProjectMembersReply {
  readonly project_members: readonly {
    /** Id of the member: that of its user. */
    readonly member_id: string;
    /** Id of the user. */
    readonly user_id: string;
    /** Address. */
    readonly email: string;
    /** Name. */
    readonly name: string;
    /** Role in the organization that owns the project. */
    readonly org_role: string;
    /** Where the access comes from: the role in the organization. */
    readonly grant_source: string;
  }[];
  readonly pagination: CursorPagination;
}

export interface GetAvailablePreloadLibrariesReply {
  readonly libraries: readonly {
    /** As `settings.preload_libraries` takes it. */
    readonly library_name: string;
    /** What it is for. */
    readonly description: string;
    /** Loaded unless `use_defaults` is false. */
    readonly is_default: boolean;
    /** Always false. */
    readonly is_experimental: boolean;
    /** The build of Postgres that it comes with. */
    readonly version: string;
  }[];
}

export interface ListProjectExtensionsReply {
  readonly extensions: readonly {
    /** As `CREATE EXTENSION` takes it. */
    readonly name: string;
    /** The version that would be created. */
    readonly version?: string;
    /** What it is for, in its own words. */
    readonly comment: string;
    /** `Catnap`, or the folder of the machine that has its files. */
    readonly origin: string;
    /** Whether the owner of a database can create it. */
    readonly offered: boolean;
    /** Why it is not offered. */
    readonly reason?: string;
  }[];
  /** Why there may be other extensions than the listed ones. */
  readonly note?: string;
}

export interface ListProjectBranchBucketsReply {
  readonly buckets: readonly Readonly<Record<string, unknown>>[];
}

export interface ListProjectBranchFunctionsReply {
  readonly functions: readonly Readonly<Record<string, unknown>>[];
}

export interface ListProjectBranchTriggersReply {
  readonly triggers: readonly Readonly<Record<string, unknown>>[];
}

export interface ListProjectBranchCustomDomainsReply {
  readonly custom_domains: readonly Readonly<Record<string, unknown>>[];
}

export interface ListProjectPermissionsReply {
  readonly project_permissions: readonly Readonly<Record<string, unknown>>[];
}

export interface GetOrganizationInvitationsReply {
  readonly invitations: readonly Readonly<Record<string, unknown>>[];
}

/** A stream of type text/event-stream. */
export type StreamEventsReply = string;

/** What runs here. Everything from `driver` on is sent to the same machine, and elsewhere to requests with a key. */
export interface Installation {
  /** Always `catnap`. */
  readonly name: string;
  /** Version of Catnap. */
  readonly version: string;
  /** What runs the computes. */
  readonly driver?: string;
  /** The one region of this installation. */
  readonly region_id?: string;
  /** Major versions of Postgres that projects can have, ascending. */
  readonly pg_versions?: readonly number[];
  /** Base URL of the API. */
  readonly api_url?: string;
  /** Port that Postgres clients connect to. */
  readonly database_port?: number;
  /** Whether computes are held to their sizes. */
  readonly limits_enforced?: boolean;
  /** Whether branches share blocks with their source or are full copies; null where it is not known. */
  readonly storage_method?: 'reflink' | 'copy' | null;
  /** What bounds temporary files: a disk for each compute, or Postgres for each session. */
  readonly temporary_disk_enforcement?: 'disk' | 'session';
  readonly counts?: {
    /** Number of projects. */
    readonly projects: number;
    /** Computes by state. */
    readonly endpoints: {
      /** Computes that have not started yet. */
      readonly init: number;
      /** Computes that are active. */
      readonly active: number;
      /** Computes that are suspended. */
      readonly idle: number;
    };
  };
}

/** The sign-in of the console. */
export interface ConsoleSession {
  /** Whether the request carries a valid sign-in. */
  readonly signed_in: boolean;
  /** The key that the sign-in was made with. */
  readonly key?: {
    /** Number of the key. */
    readonly id: number;
    /** Name of the key. */
    readonly name: string;
    /** What the key reaches. */
    readonly kind: 'personal' | 'organization' | 'project';
    /** The only project that the key reaches; null unless its kind is `project`. */
    readonly project_id: string | null;
    /** What the key may do. */
    readonly scope: 'full' | 'read_only' | 'branches' | 'sql';
  };
}

/** A link that opens the console signed in. */
export interface ConsoleLink {
  /** Signs in once, within the hour: `/#open=` and this is the address. */
  readonly link: string;
}

/** A client of the database port that waits for a person to let it in. */
export interface WaitingLogin {
  /** Whether a person has answered, and whether the client went on. */
  readonly state: 'waiting' | 'confirmed' | 'connected' | 'refused';
  /** Where the client connects from. */
  readonly client_address: string;
  /** What the client says that it is. */
  readonly application_name: string;
  /** The user that it asked for. */
  readonly role_name: string;
  /** The database that it asked for. */
  readonly database_name: string;
  /** When it connected. */
  readonly created_at: string;
  /** Until when the link is valid. */
  readonly expires_at: string;
}
