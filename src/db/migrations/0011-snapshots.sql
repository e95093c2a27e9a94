-- Snapshots: the data of a branch at one moment, which nothing serves. They outlive their branch.
create table snapshots (
  id text primary key,
  project_id text not null references projects on delete cascade,
  name text not null,
  slug text not null,
  -- No reference: the branch may be deleted long before the snapshot.
  source_branch_id text not null,
  -- `init` until its data is there.
  current_state text not null default 'init' check (current_state in ('init', 'ready')),
  -- False for one that a schedule made.
  manual boolean not null,
  -- The moment whose data it holds, as far as it is known.
  lsn text,
  taken_at timestamptz,
  receipt jsonb,
  logical_size bigint,
  -- All rows about the roles and databases of that moment; passwords are sealed.
  catalog jsonb,
  expires_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null default now(),
  deleting_at timestamptz
);
create unique index snapshots_slug on snapshots (project_id, slug) where deleting_at is null;
create index snapshots_expiry on snapshots (expires_at) where deleting_at is null;

-- When snapshots of a branch are made without being asked for.
create table snapshot_schedules (
  branch_id text primary key references branches on delete cascade,
  items jsonb not null,
  -- When the first of the items is due.
  next_at timestamptz not null,
  -- Why the last one that was due could not be queued.
  error text,
  updated_at timestamptz not null default now()
);
create index snapshot_schedules_due on snapshot_schedules (next_at);

-- Of a branch that was made from a snapshot: which one, and the branch that it is meant to replace, or has replaced.
alter table branches
  add column restored_from text,
  add column restored_as text,
  add column restore_status text check (restore_status in ('restored', 'finalized'));
