-- What computes used, and what that comes to.

create table endpoint_size_changes (
  id bigint generated always as identity primary key,
  endpoint_id text not null references endpoints (id) on delete cascade,
  at timestamptz not null default clock_timestamp(),
  from_cu double precision not null,
  to_cu double precision not null,
  reason text not null
);
create index endpoint_size_changes_of on endpoint_size_changes (endpoint_id, at);
create index endpoint_size_changes_age on endpoint_size_changes (at);

-- Sums are since the start of the generation, so that what lies between two rows is known whichever are kept.
create table endpoint_samples (
  endpoint_id text not null references endpoints (id) on delete cascade,
  at timestamptz not null,
  -- Seconds between rows of its kind: 15 are kept for an hour, 60 for a day, 600 for a week.
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
  primary key (endpoint_id, at)
);
create index endpoint_samples_age on endpoint_samples (resolution, at);

-- A branch that is gone keeps its hours, so that its project's add up.
create table consumption_hours (
  project_id text not null references projects (id) on delete cascade,
  branch_id text not null,
  hour timestamptz not null,
  is_root boolean not null,
  active_seconds double precision not null default 0,
  compute_unit_seconds double precision not null default 0,
  cpu_seconds double precision not null default 0,
  written_bytes double precision not null default 0,
  storage_byte_seconds double precision not null default 0,
  logical_bytes bigint not null default 0,
  primary key (branch_id, hour)
);
create index consumption_hours_of_project on consumption_hours (project_id, hour);
