-- What of a branch's past can be given and what that costs, as the driver last reported it; null until it was asked.
alter table branches add column history jsonb;

-- What was read of a past schema, until the request that waits for it has taken it.
create table schema_reads (
  operation_id uuid primary key,
  project_id text not null references projects on delete cascade,
  -- The moment and the database, so that a repeated request finds it.
  wanted jsonb not null,
  -- The schema, or why there is none.
  result jsonb not null,
  created_at timestamptz not null default now()
);
