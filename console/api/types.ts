/**
 * What the console reads of the API's replies, and no more. `test/console/types.test.ts` holds every field against the
 * API's own description, so a name that is wrong or a field that may be absent fails there.
 */

export interface Project {
  readonly id: string;
  readonly name: string;
  readonly region_id: string;
  readonly pg_version: number;
  readonly created_at: string;
  readonly updated_at: string;
  readonly history_retention_seconds: number;
  readonly default_endpoint_settings?: DefaultEndpointSettings;
  readonly settings?: ProjectSettings;
  readonly compute_last_active_at?: string;
  readonly org_id?: string;
}

export interface ProjectListItem {
  readonly id: string;
  readonly name: string;
  readonly region_id: string;
  readonly pg_version: number;
  readonly created_at: string;
  readonly compute_last_active_at?: string;
  readonly org_id?: string;
}

export interface DefaultEndpointSettings {
  readonly autoscaling_limit_min_cu?: number;
  readonly autoscaling_limit_max_cu?: number;
  readonly suspend_timeout_seconds?: number;
}

export interface ProjectSettings {
  readonly allowed_ips?: AllowedIps;
  readonly block_public_connections?: boolean;
}

export interface AllowedIps {
  readonly ips?: readonly string[];
  readonly protected_branches_only?: boolean;
}

export interface Branch {
  readonly id: string;
  readonly project_id: string;
  readonly name: string;
  readonly parent_id?: string;
  readonly parent_lsn?: string;
  readonly parent_timestamp?: string;
  readonly current_state: string;
  readonly pending_state?: string;
  readonly logical_size?: number;
  readonly default: boolean;
  readonly protected: boolean;
  readonly created_at: string;
  readonly updated_at: string;
  readonly expires_at?: string;
  readonly last_reset_at?: string;
  readonly receipt?: {
    readonly method: string;
    readonly lsn?: string;
    readonly duration_ms: number;
    readonly bytes_copied: number;
    readonly bytes_shared: number;
  };
}

export type EndpointState = 'init' | 'active' | 'idle';

export interface Endpoint {
  readonly id: string;
  readonly name?: string;
  readonly host: string;
  readonly project_id: string;
  readonly branch_id: string;
  readonly type: 'read_write' | 'read_only';
  readonly current_state: EndpointState;
  readonly pending_state?: EndpointState;
  readonly autoscaling_limit_min_cu: number;
  readonly autoscaling_limit_max_cu: number;
  readonly suspend_timeout_seconds: number;
  readonly disabled: boolean;
  readonly last_active?: string;
  readonly started_at?: string;
  readonly suspended_at?: string;
  readonly created_at: string;
  readonly compute_release_version?: string;
  /** What the next start brings. */
  readonly pending_update?: {
    readonly compute_release_version?: string;
    readonly autoscaling_limit_max_cu?: number;
  };
  readonly replication_lag_bytes?: number;
  readonly replication_lag_seconds?: number;
  readonly current_cu?: number;
  readonly limits_enforced: boolean;
  readonly why_awake?: { readonly reason: string; readonly description: string; readonly sleeps_at?: string };
}

export type OperationStatus =
  | 'scheduling'
  | 'running'
  | 'finished'
  | 'failed'
  | 'error'
  | 'cancelling'
  | 'cancelled'
  | 'skipped';

export interface Operation {
  readonly id: string;
  readonly project_id: string;
  readonly branch_id?: string;
  readonly endpoint_id?: string;
  readonly action: string;
  readonly status: OperationStatus;
  readonly error?: string;
  readonly failures_count: number;
  readonly retry_at?: string;
  readonly created_at: string;
  readonly updated_at: string;
  readonly total_duration_ms: number;
}

export interface Role {
  readonly branch_id: string;
  readonly name: string;
  readonly password?: string;
  readonly protected?: boolean;
  readonly authentication_method?: 'password' | 'oauth' | 'no_login';
  readonly created_at: string;
}

export interface Database {
  readonly id: number;
  readonly branch_id: string;
  readonly name: string;
  readonly owner_name: string;
  readonly created_at: string;
}

export interface Organization {
  readonly id: string;
  readonly name: string;
  readonly plan: string;
  readonly created_at: string;
}

export interface CurrentUser {
  readonly id: string;
  readonly email: string;
  readonly name: string;
  readonly plan: string;
  readonly projects_limit: number;
  readonly branches_limit: number;
  readonly max_autoscaling_limit: number;
}

export interface ApiKey {
  readonly id: number;
  readonly name: string;
  readonly created_at: string;
  readonly created_by: { readonly id: string; readonly name: string };
  readonly last_used_at: string | null;
  readonly last_used_from_addr: string;
  readonly project_id?: string;
}

export interface ApiKeyCreated {
  readonly id: number;
  readonly key: string;
  readonly name: string;
  readonly project_id?: string;
}

export interface NeonAuthIntegration {
  readonly auth_provider: 'stack';
  readonly auth_provider_project_id: string;
  readonly branch_id: string;
  readonly db_name: string;
  readonly created_at: string;
  readonly owned_by: 'neon' | 'user';
  readonly transfer_status?: 'initiated' | 'finished';
  readonly jwks_url: string;
  readonly base_url?: string;
  readonly users_synced_at?: string;
  readonly users_sync_error?: string;
  readonly users_provider_error?: string;
}
