-- Branches, the computes that serve them, what is in their databases, and the work to be done.

create table branches (
  id text primary key,
  project_id text not null references projects on delete cascade,
  name text not null,
  parent_id text references branches,
  parent_lsn text,
  parent_timestamp timestamptz,
  current_state text not null check (current_state in ('init', 'resetting', 'ready')),
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
  deleting_at timestamptz,
  -- When it was last restored.
  last_reset_at timestamptz,
  -- Up to here its storage is in consumption_hours.
  metered_until timestamptz,
  -- The position in the server's log at the last measurement.
  metered_wal bigint,
  -- Counters of one month, which it names.
  usage jsonb not null default '{}',
  -- Whether the roles and databases on record are those that the branch's server held when it last stopped. Then a
  -- wake need not ask the server for them.
  catalog_kept boolean not null default false,
  -- What the server said at the last measurement that it wrote. The position in its log is not enough: it advances by
  -- a whole segment when a branch is copied.
  metered_wal_bytes double precision
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
  -- Of an awake read replica whose primary is awake too: how far behind it was when last measured.
  replication jsonb,
  last_active timestamptz,
  started_at timestamptz,
  suspended_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleting_at timestamptz,
  -- What a compute was busy with when it was last asked, by the loop that puts computes to sleep.
  work_seen jsonb,
  -- The size in force within min and max; null while it does not run, or runs without limits.
  current_cu double precision,
  -- What a compute that runs, or starts, takes of an installation with a stated capacity.
  reserved_cu double precision,
  -- Processes that the kernel ended because memory ran out, as far as they are on record, in this generation.
  kills_generation integer not null default 0,
  kills integer not null default 0,
  -- Up to here its time is in consumption_hours, and up to these sums its use.
  metered_until timestamptz,
  metered_cpu_seconds double precision not null default 0
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
-- Clients that watch for changes ask for the latest ones.
create index operations_by_change on operations (updated_at);
