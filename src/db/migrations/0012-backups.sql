-- What the store off the machine has of each history, as the uploader last saw it.
create table backup_histories (
  history_id text primary key,
  project_id text not null,
  branch_id text not null,
  local_at timestamptz,
  local_lsn pg_lsn,
  stored_from timestamptz,
  stored_at timestamptz,
  stored_lsn pg_lsn,
  base_count int not null,
  stored_bytes bigint not null,
  waiting_bytes bigint not null,
  gap_count int not null,
  problem text,
  reported_at timestamptz not null,
  -- Since when this machine no longer has it; the store keeps it for a while.
  gone_since timestamptz
);

-- The uploader itself, and the last check that restored something. One row, or none before the first upload.
create table backup_state (
  is_only boolean primary key default true check (is_only),
  url text not null,
  reported_at timestamptz not null,
  succeeded_at timestamptz,
  problem text,
  problem_since timestamptz,
  verified_at timestamptz,
  verified_ok boolean,
  -- What it found, as sentences.
  verification text
);
