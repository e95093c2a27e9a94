-- What all migrations in src/db/migrations come to, for reading and for review.
-- Written by `npm run generate`; do not edit.

create sequence tenant_numbers as integer;

create table api_keys (
  id bigint generated always as identity not null,
  token_hash bytea not null,
  kind text not null,
  user_id uuid,
  organization_id text,
  project_id text,
  name text not null,
  created_by uuid not null,
  created_at timestamp with time zone default now() not null,
  last_used_at timestamp with time zone,
  last_used_from_addr text default ''::text not null,
  scope text default 'full'::text not null,
  expires_at timestamp with time zone,
  constraint api_keys_pkey PRIMARY KEY (id),
  constraint api_keys_token_hash_key UNIQUE (token_hash),
  constraint api_keys_created_by_fkey FOREIGN KEY (created_by) REFERENCES users(id),
  constraint api_keys_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint api_keys_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint api_keys_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,
  constraint api_keys_check CHECK (((kind = 'personal'::text) = (user_id IS NOT NULL))),
  constraint api_keys_check1 CHECK (((kind = 'personal'::text) = (organization_id IS NULL))),
  constraint api_keys_check2 CHECK (((kind = 'project'::text) = (project_id IS NOT NULL))),
  constraint api_keys_kind_check CHECK ((kind = ANY (ARRAY['personal'::text, 'organization'::text, 'project'::text]))),
  constraint api_keys_scope_check CHECK ((scope = ANY (ARRAY['full'::text, 'read_only'::text, 'branches'::text, 'sql'::text])))
);

create table auth_integrations (
  id uuid not null,
  project_id text not null,
  status text not null,
  auth_provider text not null,
  branch_id text,
  database_id bigint,
  database_name text not null,
  role_name text not null,
  provider_url text,
  provider_project_id uuid,
  admin_key bytea,
  webhook_secret bytea,
  first_keys bytea,
  owned_by text default 'neon'::text not null,
  transfer_status text,
  transfer_started_at timestamp with time zone,
  operation_id uuid,
  synced_seq bigint default 0 not null,
  synced_at timestamp with time zone,
  sync_failures integer default 0 not null,
  sync_error text,
  sync_retry_at timestamp with time zone,
  poll_at timestamp with time zone default now() not null,
  follow_lease uuid,
  follow_until timestamp with time zone,
  follow_failures integer default 0 not null,
  follow_error text,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone default now() not null,
  detached_with_branch boolean default false not null,
  constraint auth_integrations_pkey PRIMARY KEY (id),
  constraint auth_integrations_branch_id_fkey FOREIGN KEY (branch_id) REFERENCES branches(id) ON DELETE SET NULL,
  constraint auth_integrations_database_id_fkey FOREIGN KEY (database_id) REFERENCES databases(id) ON DELETE SET NULL,
  constraint auth_integrations_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint auth_integrations_auth_provider_check CHECK ((auth_provider = 'stack'::text)),
  constraint auth_integrations_owned_by_check CHECK ((owned_by = ANY (ARRAY['neon'::text, 'user'::text]))),
  constraint auth_integrations_status_check CHECK ((status = ANY (ARRAY['creating'::text, 'active'::text, 'detached'::text]))),
  constraint auth_integrations_transfer_status_check CHECK ((transfer_status = ANY (ARRAY['initiated'::text, 'finished'::text])))
);
CREATE UNIQUE INDEX auth_integrations_live ON catnap.auth_integrations USING btree (project_id) WHERE (status = ANY (ARRAY['creating'::text, 'active'::text]));
CREATE INDEX auth_integrations_of_branch ON catnap.auth_integrations USING btree (branch_id);
CREATE INDEX auth_integrations_of_provider ON catnap.auth_integrations USING btree (provider_project_id);

create table auth_leftovers (
  provider_project_id uuid not null,
  provider_url text,
  admin_key bytea not null,
  failures integer default 0 not null,
  retry_at timestamp with time zone default now() not null,
  constraint auth_leftovers_pkey PRIMARY KEY (provider_project_id)
);

create table auth_schema_drops (
  branch_id text not null,
  database_name text not null,
  retry_at timestamp with time zone default now() not null,
  constraint auth_schema_drops_pkey PRIMARY KEY (branch_id, database_name),
  constraint auth_schema_drops_branch_id_fkey FOREIGN KEY (branch_id) REFERENCES branches(id) ON DELETE CASCADE
);

create table auth_user_changes (
  seq bigint generated always as identity not null,
  project_id uuid not null,
  user_id uuid not null,
  kind text not null,
  user_json jsonb not null,
  occurred_at timestamp with time zone default now() not null,
  constraint auth_user_changes_pkey PRIMARY KEY (seq),
  constraint auth_user_changes_kind_check CHECK ((kind = ANY (ARRAY['created'::text, 'updated'::text, 'deleted'::text])))
);
CREATE INDEX auth_user_changes_of_project ON catnap.auth_user_changes USING btree (project_id, seq);
CREATE INDEX auth_user_changes_of_user ON catnap.auth_user_changes USING btree (project_id, user_id, seq DESC);

create table auth_user_hints (
  project_id uuid not null,
  user_id uuid not null,
  version integer default 1 not null,
  constraint auth_user_hints_pkey PRIMARY KEY (project_id, user_id)
);

create table backup_histories (
  history_id text not null,
  project_id text not null,
  branch_id text not null,
  local_at timestamp with time zone,
  local_lsn pg_lsn,
  stored_from timestamp with time zone,
  stored_at timestamp with time zone,
  stored_lsn pg_lsn,
  base_count integer not null,
  stored_bytes bigint not null,
  waiting_bytes bigint not null,
  gap_count integer not null,
  problem text,
  reported_at timestamp with time zone not null,
  gone_since timestamp with time zone,
  behind_since timestamp with time zone,
  constraint backup_histories_pkey PRIMARY KEY (history_id)
);

create table backup_state (
  is_only boolean default true not null,
  url text not null,
  reported_at timestamp with time zone not null,
  succeeded_at timestamp with time zone,
  problem text,
  problem_since timestamp with time zone,
  verified_at timestamp with time zone,
  verified_ok boolean,
  verification text,
  constraint backup_state_pkey PRIMARY KEY (is_only),
  constraint backup_state_is_only_check CHECK (is_only)
);

create table branches (
  id text not null,
  project_id text not null,
  name text not null,
  parent_id text,
  parent_lsn text,
  parent_timestamp timestamp with time zone,
  current_state text not null,
  pending_state text,
  state_changed_at timestamp with time zone default now() not null,
  logical_size bigint,
  is_default boolean not null,
  protected boolean not null,
  init_source text not null,
  expires_at timestamp with time zone,
  annotation jsonb default '{}'::jsonb not null,
  receipt jsonb,
  created_by uuid not null,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone default now() not null,
  deleting_at timestamp with time zone,
  last_reset_at timestamp with time zone,
  metered_until timestamp with time zone,
  metered_wal bigint,
  usage jsonb default '{}'::jsonb not null,
  catalog_kept boolean default false not null,
  metered_wal_bytes double precision,
  replication_slots jsonb,
  history jsonb,
  recoverable_until timestamp with time zone,
  deletion_method text,
  restored_from text,
  restored_as text,
  restore_status text,
  history_due_at timestamp with time zone default now() not null,
  metered_size bigint,
  is_resized boolean generated always as ((logical_size IS DISTINCT FROM metered_size)) stored not null,
  constraint branches_pkey PRIMARY KEY (id),
  constraint branches_created_by_fkey FOREIGN KEY (created_by) REFERENCES users(id),
  constraint branches_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES branches(id),
  constraint branches_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint branches_current_state_check CHECK ((current_state = ANY (ARRAY['init'::text, 'resetting'::text, 'ready'::text]))),
  constraint branches_deletion_method_check CHECK ((deletion_method = ANY (ARRAY['user'::text, 'ttl'::text]))),
  constraint branches_restore_status_check CHECK ((restore_status = ANY (ARRAY['restored'::text, 'finalized'::text])))
);
CREATE INDEX branches_children ON catnap.branches USING btree (parent_id);
CREATE UNIQUE INDEX branches_default ON catnap.branches USING btree (project_id) WHERE (is_default AND (deleting_at IS NULL));
CREATE INDEX branches_expiring ON catnap.branches USING btree (expires_at) WHERE ((expires_at IS NOT NULL) AND (deleting_at IS NULL));
CREATE INDEX branches_history_due ON catnap.branches USING btree (history_due_at) WHERE (deleting_at IS NULL);
CREATE INDEX branches_history_unknown ON catnap.branches USING btree (id) WHERE ((history IS NULL) AND (deleting_at IS NULL));
CREATE UNIQUE INDEX branches_name ON catnap.branches USING btree (project_id, name) WHERE (deleting_at IS NULL);
CREATE INDEX branches_recoverable ON catnap.branches USING btree (recoverable_until) WHERE (recoverable_until IS NOT NULL);
CREATE INDEX branches_resized ON catnap.branches USING btree (project_id) WHERE (is_resized AND (deleting_at IS NULL));
CREATE INDEX branches_slots ON catnap.branches USING btree (id) WHERE (replication_slots IS NOT NULL);

create table console_links (
  token_hash bytea not null,
  api_key_id bigint not null,
  expires_at timestamp with time zone not null,
  constraint console_links_pkey PRIMARY KEY (token_hash),
  constraint console_links_api_key_id_fkey FOREIGN KEY (api_key_id) REFERENCES api_keys(id) ON DELETE CASCADE
);

create table console_sessions (
  token_hash bytea not null,
  api_key_id bigint not null,
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone not null,
  constraint console_sessions_pkey PRIMARY KEY (token_hash),
  constraint console_sessions_api_key_id_fkey FOREIGN KEY (api_key_id) REFERENCES api_keys(id) ON DELETE CASCADE
);
CREATE INDEX console_sessions_of_key ON catnap.console_sessions USING btree (api_key_id, created_at DESC);

create table consumption_hours (
  project_id text not null,
  branch_id text not null,
  hour timestamp with time zone not null,
  is_root boolean not null,
  active_seconds double precision default 0 not null,
  compute_unit_seconds double precision default 0 not null,
  cpu_seconds double precision default 0 not null,
  written_bytes double precision default 0 not null,
  storage_byte_seconds double precision default 0 not null,
  logical_bytes bigint default 0 not null,
  transfer_bytes double precision default 0 not null,
  constraint consumption_hours_pkey PRIMARY KEY (branch_id, hour),
  constraint consumption_hours_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE
);
CREATE INDEX consumption_hours_of_project ON catnap.consumption_hours USING btree (project_id, hour);

create table databases (
  id bigint generated always as identity not null,
  branch_id text not null,
  name text not null,
  owner_name text not null,
  applied_name text,
  pending boolean default true not null,
  revision integer default 1 not null,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone default now() not null,
  dropped_at timestamp with time zone,
  constraint databases_pkey PRIMARY KEY (id),
  constraint databases_branch_id_fkey FOREIGN KEY (branch_id) REFERENCES branches(id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX databases_name ON catnap.databases USING btree (branch_id, name) WHERE (dropped_at IS NULL);
CREATE INDEX databases_of_branch ON catnap.databases USING btree (branch_id);

create table deliveries (
  operation_id uuid not null,
  project_id text not null,
  data_id text not null,
  source_id text not null,
  origin jsonb not null,
  receipt jsonb,
  failure text,
  constraint deliveries_pkey PRIMARY KEY (operation_id),
  constraint deliveries_operation_id_fkey FOREIGN KEY (operation_id) REFERENCES operations(id) ON DELETE CASCADE,
  constraint deliveries_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint deliveries_check CHECK (((receipt IS NULL) OR (failure IS NULL)))
);
CREATE INDEX deliveries_of_project ON catnap.deliveries USING btree (project_id);

create table duties (
  name text not null,
  worker_id text not null,
  held_until timestamp with time zone not null,
  constraint duties_pkey PRIMARY KEY (name)
);

create table endpoint_samples (
  endpoint_id text not null,
  at timestamp with time zone not null,
  resolution smallint not null,
  generation integer not null,
  cu double precision,
  cpu_seconds double precision not null,
  throttled_periods bigint not null,
  memory_bytes bigint not null,
  cache_bytes bigint not null,
  working_set_bytes bigint not null,
  connections_active integer,
  connections_idle integer,
  connections_max integer,
  transactions bigint,
  blocks_hit bigint,
  blocks_read bigint,
  replication_lag_bytes bigint,
  database_bytes bigint,
  constraint endpoint_samples_pkey PRIMARY KEY (endpoint_id, at),
  constraint endpoint_samples_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES endpoints(id) ON DELETE CASCADE
);
CREATE INDEX endpoint_samples_age ON catnap.endpoint_samples USING btree (resolution, at);

create table endpoint_size_changes (
  id bigint generated always as identity not null,
  endpoint_id text not null,
  at timestamp with time zone default clock_timestamp() not null,
  from_cu double precision not null,
  to_cu double precision not null,
  reason text not null,
  constraint endpoint_size_changes_pkey PRIMARY KEY (id),
  constraint endpoint_size_changes_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES endpoints(id) ON DELETE CASCADE
);
CREATE INDEX endpoint_size_changes_age ON catnap.endpoint_size_changes USING btree (at);
CREATE INDEX endpoint_size_changes_of ON catnap.endpoint_size_changes USING btree (endpoint_id, at);

create table endpoints (
  id text not null,
  project_id text not null,
  branch_id text not null,
  type text not null,
  name text,
  min_cu double precision not null,
  max_cu double precision not null,
  suspend_timeout_seconds integer not null,
  settings jsonb not null,
  pooler_enabled boolean not null,
  disabled boolean not null,
  passwordless_access boolean not null,
  current_state text not null,
  pending_state text,
  address jsonb,
  generation integer default 0 not null,
  server jsonb,
  replication jsonb,
  last_active timestamp with time zone,
  started_at timestamp with time zone,
  suspended_at timestamp with time zone,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone default now() not null,
  deleting_at timestamp with time zone,
  work_seen jsonb,
  current_cu double precision,
  reserved_cu double precision,
  kills_generation integer default 0 not null,
  kills integer default 0 not null,
  metered_until timestamp with time zone,
  metered_cpu_seconds double precision default 0 not null,
  recoverable_until timestamp with time zone,
  disk_guard text,
  constraint endpoints_pkey PRIMARY KEY (id),
  constraint endpoints_branch_id_fkey FOREIGN KEY (branch_id) REFERENCES branches(id),
  constraint endpoints_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint endpoints_current_state_check CHECK ((current_state = ANY (ARRAY['init'::text, 'active'::text, 'idle'::text]))),
  constraint endpoints_disk_guard_check CHECK ((disk_guard = ANY (ARRAY['read_only'::text, 'held'::text]))),
  constraint endpoints_pending_state_check CHECK ((pending_state = ANY (ARRAY['active'::text, 'idle'::text]))),
  constraint endpoints_type_check CHECK ((type = ANY (ARRAY['read_write'::text, 'read_only'::text])))
);
CREATE INDEX endpoints_disk_guard ON catnap.endpoints USING btree (id) WHERE (disk_guard IS NOT NULL);
CREATE INDEX endpoints_of_branch ON catnap.endpoints USING btree (branch_id);
CREATE INDEX endpoints_of_project ON catnap.endpoints USING btree (project_id);
CREATE UNIQUE INDEX endpoints_read_write ON catnap.endpoints USING btree (branch_id) WHERE ((type = 'read_write'::text) AND (deleting_at IS NULL));
CREATE INDEX endpoints_reserved ON catnap.endpoints USING btree (id) WHERE (reserved_cu IS NOT NULL);
CREATE INDEX endpoints_running ON catnap.endpoints USING btree (id) WHERE (current_state = 'active'::text);

create table idempotency_keys (
  scope text not null,
  key text not null,
  request_hash bytea not null,
  reply bytea,
  created_at timestamp with time zone default now() not null,
  constraint idempotency_keys_pkey PRIMARY KEY (scope, key)
);
CREATE INDEX idempotency_keys_age ON catnap.idempotency_keys USING btree (created_at);

create table installation (
  is_the_one boolean default true not null,
  key_fingerprint bytea not null,
  constraint installation_pkey PRIMARY KEY (is_the_one),
  constraint installation_is_the_one_check CHECK (is_the_one)
);

create table looks (
  id text not null,
  project_id text not null,
  branch_id text not null,
  data_id text not null,
  past jsonb not null,
  logins jsonb not null,
  role_names text[],
  operation_id uuid not null,
  state text not null,
  refusal text,
  route jsonb,
  last_active timestamp with time zone not null,
  constraint looks_pkey PRIMARY KEY (id),
  constraint looks_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint looks_state_check CHECK ((state = ANY (ARRAY['opening'::text, 'open'::text, 'closing'::text, 'refused'::text])))
);
CREATE INDEX looks_project ON catnap.looks USING btree (project_id);

create table operations (
  id uuid not null,
  sequence bigint generated always as identity not null,
  project_id text not null,
  branch_id text,
  endpoint_id text,
  action text,
  status text not null,
  error text,
  failures_count integer default 0 not null,
  retry_at timestamp with time zone,
  created_at timestamp with time zone default clock_timestamp() not null,
  updated_at timestamp with time zone default clock_timestamp() not null,
  finished_at timestamp with time zone,
  job text not null,
  step text not null,
  state jsonb default '{}'::jsonb not null,
  exclusive_keys text[] not null,
  shared_keys text[] not null,
  priority smallint default 0 not null,
  run_at timestamp with time zone default now() not null,
  lease uuid,
  lease_until timestamp with time zone,
  deadline_at timestamp with time zone not null,
  constraint operations_pkey PRIMARY KEY (id),
  constraint operations_sequence_key UNIQUE (sequence),
  constraint operations_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint operations_status_check CHECK ((status = ANY (ARRAY['scheduling'::text, 'running'::text, 'finished'::text, 'failed'::text, 'error'::text, 'cancelling'::text, 'cancelled'::text, 'skipped'::text])))
);
CREATE INDEX operations_by_change ON catnap.operations USING btree (updated_at);
CREATE INDEX operations_of_endpoint ON catnap.operations USING btree (endpoint_id, sequence DESC);
CREATE INDEX operations_of_project ON catnap.operations USING btree (project_id, created_at DESC);
CREATE INDEX operations_unfinished ON catnap.operations USING btree (sequence) WHERE (status = ANY (ARRAY['scheduling'::text, 'running'::text, 'failed'::text, 'cancelling'::text]));

create table organization_members (
  organization_id text not null,
  user_id uuid not null,
  role text default 'admin'::text not null,
  joined_at timestamp with time zone default now() not null,
  constraint organization_members_pkey PRIMARY KEY (organization_id, user_id),
  constraint organization_members_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint organization_members_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);

create table organizations (
  id text not null,
  name text not null,
  handle text not null,
  plan text not null,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone default now() not null,
  constraint organizations_pkey PRIMARY KEY (id),
  constraint organizations_handle_key UNIQUE (handle),
  constraint organizations_plan_check CHECK ((plan = ANY (ARRAY['free'::text, 'launch'::text, 'scale'::text])))
);

create table project_key_sets (
  id uuid not null,
  project_id text not null,
  branch_id text,
  jwks_url text not null,
  provider_name text not null,
  jwt_audience text,
  role_names text[] not null,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone default now() not null,
  constraint project_key_sets_pkey PRIMARY KEY (id),
  constraint project_key_sets_branch_id_fkey FOREIGN KEY (branch_id) REFERENCES branches(id) ON DELETE CASCADE,
  constraint project_key_sets_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE
);
CREATE INDEX project_key_sets_of_branch ON catnap.project_key_sets USING btree (branch_id);
CREATE INDEX project_key_sets_of_project ON catnap.project_key_sets USING btree (project_id);

create table projects (
  id text not null,
  organization_id text not null,
  owner_id uuid not null,
  name text not null,
  region_id text not null,
  pg_version integer not null,
  store_passwords boolean not null,
  history_retention_seconds integer not null,
  settings jsonb not null,
  default_endpoint_settings jsonb not null,
  tenant_uid integer,
  admin_secret bytea not null,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone default now() not null,
  deleting_at timestamp with time zone,
  usage jsonb default '{}'::jsonb not null,
  recoverable_until timestamp with time zone,
  constraint projects_pkey PRIMARY KEY (id),
  constraint projects_tenant_uid_key UNIQUE (tenant_uid),
  constraint projects_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id),
  constraint projects_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES users(id)
);
CREATE INDEX projects_limited ON catnap.projects USING btree (id) WHERE (((settings -> 'quota'::text) IS NOT NULL) AND (deleting_at IS NULL));
CREATE INDEX projects_of_organization ON catnap.projects USING btree (organization_id, id) WHERE (deleting_at IS NULL);
CREATE INDEX projects_recoverable ON catnap.projects USING btree (recoverable_until) WHERE (recoverable_until IS NOT NULL);

create table roles (
  id bigint generated always as identity not null,
  branch_id text not null,
  name text not null,
  verifier text,
  password bytea,
  no_login boolean default false not null,
  protected boolean default false not null,
  applied boolean default false not null,
  pending boolean default true not null,
  revision integer default 1 not null,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone default now() not null,
  dropped_at timestamp with time zone,
  limited boolean default false not null,
  reset_at timestamp with time zone,
  held_verifier text,
  constraint roles_pkey PRIMARY KEY (id),
  constraint roles_branch_id_fkey FOREIGN KEY (branch_id) REFERENCES branches(id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX roles_name ON catnap.roles USING btree (branch_id, name) WHERE (dropped_at IS NULL);
CREATE INDEX roles_of_branch ON catnap.roles USING btree (branch_id);
CREATE INDEX roles_password_mark ON catnap.roles USING btree (SUBSTRING(password FROM 2 FOR 16)) WHERE ((get_byte(password, 0) = 2) AND (dropped_at IS NULL));

create table saved_queries (
  id text not null,
  project_id text not null,
  name text not null,
  query text not null,
  is_open boolean not null,
  revision integer default 1 not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone default now() not null,
  constraint saved_queries_pkey PRIMARY KEY (id),
  constraint saved_queries_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE
);
CREATE INDEX saved_queries_of_project ON catnap.saved_queries USING btree (project_id, created_at);

create table schema_migrations (
  migration_set text not null,
  version integer not null,
  name text not null,
  checksum text not null,
  applied_at timestamp with time zone default now() not null,
  constraint schema_migrations_pkey PRIMARY KEY (migration_set, version)
);

create table schema_reads (
  operation_id uuid not null,
  project_id text not null,
  wanted jsonb not null,
  result jsonb not null,
  created_at timestamp with time zone default now() not null,
  constraint schema_reads_pkey PRIMARY KEY (operation_id),
  constraint schema_reads_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE
);

create table snapshot_schedules (
  branch_id text not null,
  items jsonb not null,
  next_at timestamp with time zone not null,
  error text,
  updated_at timestamp with time zone default now() not null,
  constraint snapshot_schedules_pkey PRIMARY KEY (branch_id),
  constraint snapshot_schedules_branch_id_fkey FOREIGN KEY (branch_id) REFERENCES branches(id) ON DELETE CASCADE
);
CREATE INDEX snapshot_schedules_due ON catnap.snapshot_schedules USING btree (next_at);

create table snapshots (
  id text not null,
  project_id text not null,
  name text not null,
  slug text not null,
  source_branch_id text not null,
  current_state text default 'init'::text not null,
  manual boolean not null,
  lsn text,
  taken_at timestamp with time zone,
  receipt jsonb,
  logical_size bigint,
  catalog jsonb,
  expires_at timestamp with time zone,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone default now() not null,
  deleting_at timestamp with time zone,
  constraint snapshots_pkey PRIMARY KEY (id),
  constraint snapshots_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint snapshots_current_state_check CHECK ((current_state = ANY (ARRAY['init'::text, 'ready'::text])))
);
CREATE INDEX snapshots_expiry ON catnap.snapshots USING btree (expires_at) WHERE (deleting_at IS NULL);
CREATE UNIQUE INDEX snapshots_slug ON catnap.snapshots USING btree (project_id, slug) WHERE (deleting_at IS NULL);

create table stored_spans (
  project_id text not null,
  branch_id text not null,
  is_root boolean not null,
  since timestamp with time zone not null,
  until timestamp with time zone not null,
  bytes bigint not null,
  constraint stored_spans_pkey PRIMARY KEY (branch_id, since),
  constraint stored_spans_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE
);
CREATE INDEX stored_spans_of_project ON catnap.stored_spans USING btree (project_id, until);

create table transfer_reports (
  reporter uuid not null,
  sequence bigint not null,
  reported_at timestamp with time zone default now() not null,
  constraint transfer_reports_pkey PRIMARY KEY (reporter)
);

create table transfers (
  project_id text not null,
  branch_id text not null,
  bytes bigint not null
);
CREATE INDEX transfers_of_project ON catnap.transfers USING btree (project_id);

create table users (
  id uuid not null,
  email text not null,
  login text not null,
  name text not null,
  last_name text default ''::text not null,
  created_at timestamp with time zone default now() not null,
  constraint users_pkey PRIMARY KEY (id),
  constraint users_email_key UNIQUE (email)
);

create table waiting_logins (
  token_hash bytea not null,
  client_address text not null,
  client_key text not null,
  asked_role text not null,
  asked_database text not null,
  application_name text not null,
  created_at timestamp with time zone default clock_timestamp() not null,
  expires_at timestamp with time zone not null,
  decided_at timestamp with time zone,
  api_key_id bigint,
  endpoint_id text,
  role_name text,
  database_name text,
  taken_at timestamp with time zone,
  constraint waiting_logins_pkey PRIMARY KEY (token_hash),
  constraint waiting_logins_api_key_id_fkey FOREIGN KEY (api_key_id) REFERENCES api_keys(id) ON DELETE CASCADE,
  constraint waiting_logins_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES endpoints(id) ON DELETE CASCADE
);
CREATE INDEX waiting_logins_of_client ON catnap.waiting_logins USING btree (client_key) WHERE (decided_at IS NULL);

create table webhook_deliveries (
  id uuid not null,
  webhook_id text not null,
  event_id text not null,
  event text not null,
  body text not null,
  replay_of uuid,
  status text default 'pending'::text not null,
  attempts integer default 0 not null,
  due_at timestamp with time zone not null,
  response_status integer,
  error text,
  created_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  constraint webhook_deliveries_pkey PRIMARY KEY (id),
  constraint webhook_deliveries_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES webhooks(id) ON DELETE CASCADE,
  constraint webhook_deliveries_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'delivered'::text, 'failed'::text])))
);
CREATE INDEX webhook_deliveries_due ON catnap.webhook_deliveries USING btree (due_at) WHERE (status = 'pending'::text);
CREATE INDEX webhook_deliveries_of_webhook ON catnap.webhook_deliveries USING btree (webhook_id, created_at DESC);
CREATE UNIQUE INDEX webhook_deliveries_once ON catnap.webhook_deliveries USING btree (webhook_id, event_id) WHERE (replay_of IS NULL);

create table webhooks (
  id text not null,
  project_id text not null,
  url text not null,
  events text[] not null,
  secret bytea not null,
  is_enabled boolean default true not null,
  failing_since timestamp with time zone,
  created_at timestamp with time zone default clock_timestamp() not null,
  updated_at timestamp with time zone default clock_timestamp() not null,
  constraint webhooks_pkey PRIMARY KEY (id),
  constraint webhooks_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE
);
CREATE INDEX webhooks_of_project ON catnap.webhooks USING btree (project_id, created_at);

create view auth_user_log as
 SELECT stack_user_changes.seq,
    stack_user_changes.project_id,
    stack_user_changes.user_id,
    stack_user_changes.kind,
    stack_user_changes.user_json,
    stack_user_changes.occurred_at
   FROM stack_user_changes
UNION ALL
 SELECT auth_user_changes.seq,
    auth_user_changes.project_id,
    auth_user_changes.user_id,
    auth_user_changes.kind,
    auth_user_changes.user_json,
    auth_user_changes.occurred_at
   FROM auth_user_changes;
