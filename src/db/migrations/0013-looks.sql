-- Computes that serve a moment of the past to clients for a while, and are in no list of the API.
create table looks (
  -- What the driver and the proxy call the compute.
  id text primary key,
  project_id text not null references projects on delete cascade,
  -- The branch whose past was asked for. It may be deleted before its looks are closed.
  branch_id text not null,
  -- What the driver calls the recovered data.
  data_id text not null,
  -- The branch whose history has the moment, and the moment.
  past jsonb not null,
  -- The verifiers of the branch's roles when it was opened: with these they log in.
  logins jsonb not null,
  -- The roles that existed at the moment; null until it is open.
  role_names text[],
  operation_id uuid not null,
  state text not null check (state in ('opening', 'open', 'closing', 'refused')),
  -- Why the moment cannot be given.
  refusal text,
  route jsonb,
  last_active timestamptz not null
);

create index looks_project on looks (project_id);
