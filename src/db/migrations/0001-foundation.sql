-- The system database: who may ask, what they own, and the work to be done.

create table users (
  id uuid primary key,
  email text not null unique,
  login text not null,
  name text not null,
  last_name text not null default '',
  created_at timestamptz not null default now()
);

create table organizations (
  id text primary key,
  name text not null,
  handle text not null unique,
  plan text not null check (plan in ('free', 'launch', 'scale')),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

create table organization_members (
  organization_id text not null references organizations on delete cascade,
  user_id uuid not null references users on delete cascade,
  role text not null default 'admin',
  joined_at timestamptz not null default now(),
  primary key (organization_id, user_id)
);

create table projects (
  id text primary key,
  organization_id text not null references organizations,
  owner_id uuid not null references users,
  name text not null,
  region_id text not null,
  pg_version integer not null,
  store_passwords boolean not null,
  history_retention_seconds integer not null,
  provisioner text not null,
  settings jsonb not null,
  default_endpoint_settings jsonb not null,
  -- Operating-system uid of the project's servers; null when Catnap does not run as root.
  tenant_uid integer unique,
  -- Password of Catnap's own login in the project's servers, sealed with the key file.
  admin_secret bytea not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleting_at timestamptz
);
create index projects_of_organization on projects (organization_id, id) where deleting_at is null;
create sequence tenant_numbers as integer;

-- Only the hash of a key is kept.
create table api_keys (
  id bigint generated always as identity primary key,
  token_hash bytea not null unique,
  kind text not null check (kind in ('personal', 'organization', 'project')),
  user_id uuid references users on delete cascade,
  organization_id text references organizations on delete cascade,
  project_id text references projects on delete cascade,
  name text not null,
  created_by uuid not null references users,
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  last_used_from_addr text not null default '',
  check ((kind = 'personal') = (user_id is not null)),
  check ((kind = 'personal') = (organization_id is null)),
  check ((kind = 'project') = (project_id is not null))
);

create table branches (
  id text primary key,
  project_id text not null references projects on delete cascade,
  name text not null,
  parent_id text references branches,
  parent_lsn text,
  parent_timestamp timestamptz,
  current_state text not null check (current_state in ('init', 'ready')),
  pending_state text,
  state_changed_at timestamptz not null default now(),
  logical_size bigint,
  is_default boolean not null,
  protected boolean not null,
  init_source text not null,
  expires_at timestamptz,
  annotation jsonb not null default '{}',
  receipt jsonb,
  created_by uuid not null references users,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleting_at timestamptz
);
create unique index branches_name on branches (project_id, name) where deleting_at is null;
create unique index branches_default on branches (project_id) where is_default and deleting_at is null;
create index branches_children on branches (parent_id);

create table endpoints (
  id text primary key,
  project_id text not null references projects on delete cascade,
  branch_id text not null references branches,
  type text not null check (type in ('read_write', 'read_only')),
  name text,
  min_cu double precision not null,
  max_cu double precision not null,
  suspend_timeout_seconds integer not null,
  settings jsonb not null,
  pooler_enabled boolean not null,
  pooler_mode text not null,
  disabled boolean not null,
  passwordless_access boolean not null,
  provisioner text not null,
  -- What was last seen of the process; never set by a request.
  current_state text not null check (current_state in ('init', 'active', 'idle')),
  pending_state text check (pending_state in ('active', 'idle')),
  -- The open route: set once a server answers, cleared before anything takes it away.
  address jsonb,
  -- Fences the outside world: raised before each start, so that a late worker cannot touch a newer server.
  generation integer not null default 0,
  -- What the server that runs, or ran last, was given: settings, size and build.
  server jsonb,
  -- Of an awake read replica whose primary is awake too: how far behind it was when last looked at.
  replication jsonb,
  last_active timestamptz,
  started_at timestamptz,
  suspended_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleting_at timestamptz
);
create unique index endpoints_read_write on endpoints (branch_id) where type = 'read_write' and deleting_at is null;
create index endpoints_of_project on endpoints (project_id);
create index endpoints_of_branch on endpoints (branch_id);
create index endpoints_running on endpoints (id) where current_state = 'active';

-- A row marked dropped stays until a server has carried it out. `applied_name` is the name the server knows it by.
create table databases (
  id bigint generated always as identity primary key,
  branch_id text not null references branches on delete cascade,
  name text not null,
  owner_name text not null,
  applied_name text,
  pending boolean not null default true,
  -- Raised by every change, so that an apply that began before it does not mark it as done.
  revision integer not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  dropped_at timestamptz
);
create unique index databases_name on databases (branch_id, name) where dropped_at is null;

-- `pending` means that this row is newer than the server; otherwise the server's verifier is the truth.
create table roles (
  id bigint generated always as identity primary key,
  branch_id text not null references branches on delete cascade,
  name text not null,
  verifier text,
  password bytea,
  no_login boolean not null default false,
  protected boolean not null default false,
  applied boolean not null default false,
  pending boolean not null default true,
  revision integer not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  dropped_at timestamptz
);
create unique index roles_name on roles (branch_id, name) where dropped_at is null;

-- The public operation and the job are one row; the columns from `job` on are private.
create table operations (
  id uuid primary key,
  sequence bigint generated always as identity unique,
  project_id text not null references projects on delete cascade,
  branch_id text,
  endpoint_id text,
  action text,
  status text not null check (status in
    ('scheduling', 'running', 'finished', 'failed', 'error', 'cancelling', 'cancelled', 'skipped')),
  error text,
  failures_count integer not null default 0,
  retry_at timestamptz,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz,
  job text not null,
  step text not null,
  state jsonb not null default '{}',
  exclusive_keys text[] not null,
  shared_keys text[] not null,
  priority smallint not null default 0,
  run_at timestamptz not null default now(),
  lease uuid,
  lease_until timestamptz,
  deadline_at timestamptz not null
);
create index operations_unfinished on operations (sequence)
  where status in ('scheduling', 'running', 'failed', 'cancelling');
create index operations_of_project on operations (project_id, created_at desc);
create index operations_of_endpoint on operations (endpoint_id, sequence desc);

-- Replies kept for a day, so that a repeated POST does nothing twice. The reply is sealed: it may hold a password.
create table idempotency_keys (
  scope text not null,
  key text not null,
  request_hash bytea not null,
  reply bytea,
  created_at timestamptz not null default now(),
  primary key (scope, key)
);
create index idempotency_keys_age on idempotency_keys (created_at);
