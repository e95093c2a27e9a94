-- What ties a project to an auth provider: at most one integration that is made or being made.
create table auth_integrations (
  id uuid primary key,
  project_id text not null references projects on delete cascade,
  -- `detached`: deleted with its data kept; the project at the provider waits to be taken up again.
  status text not null check (status in ('creating', 'active', 'detached')),
  auth_provider text not null check (auth_provider = 'stack'),
  -- Null only while detached: the branch may go, what the provider holds stays.
  branch_id text references branches on delete set null,
  -- Null once the database is gone; the name is then the last one known.
  database_id bigint references databases on delete set null,
  database_name text not null,
  role_name text not null,
  -- Null for the provider that Catnap brings along.
  provider_url text,
  provider_project_id uuid,
  -- Sealed: the key that administers the project at the provider.
  admin_key bytea,
  -- Sealed: what the provider signs its webhooks with.
  webhook_secret bytea,
  -- Sealed: the first SDK keys, until the request that asked for them, or its repeat, has taken them.
  first_keys bytea,
  owned_by text not null default 'neon' check (owned_by in ('neon', 'user')),
  transfer_status text check (transfer_status in ('initiated', 'finished')),
  transfer_started_at timestamptz,
  -- The operation that makes it.
  operation_id uuid,
  -- The position that was last written to the tenant's database; the one that counts is kept there.
  synced_seq bigint not null default 0,
  synced_at timestamptz,
  sync_failures integer not null default 0,
  sync_error text,
  sync_retry_at timestamptz,
  -- Of a provider elsewhere: when all its users are to be read again.
  poll_at timestamptz not null default now(),
  -- Who reads users now, and until when nobody else does; after a failure, until when nobody does.
  follow_lease uuid,
  follow_until timestamptz,
  follow_failures integer not null default 0,
  follow_error text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create unique index auth_integrations_live on auth_integrations (project_id) where status in ('creating', 'active');
create index auth_integrations_of_branch on auth_integrations (branch_id);
create index auth_integrations_of_provider on auth_integrations (provider_project_id);

-- Projects at a provider that nobody needs any more. They outlive the project that they were made for.
create table auth_leftovers (
  provider_project_id uuid primary key,
  provider_url text,
  admin_key bytea not null,
  failures integer not null default 0,
  retry_at timestamptz not null default now()
);

-- Databases whose schema of users is to be dropped by whoever next has the branch's server in hand.
create table auth_schema_drops (
  branch_id text not null references branches on delete cascade,
  database_name text not null,
  retry_at timestamptz not null default now(),
  primary key (branch_id, database_name)
);

-- Users of a provider elsewhere: every change that was seen there, in order. The last one of each user is kept.
create table auth_user_changes (
  seq bigint generated always as identity primary key,
  project_id uuid not null,
  user_id uuid not null,
  kind text not null check (kind in ('created', 'updated', 'deleted')),
  user_json jsonb not null,
  occurred_at timestamptz not null default now()
);
create index auth_user_changes_of_project on auth_user_changes (project_id, seq);
create index auth_user_changes_of_user on auth_user_changes (project_id, user_id, seq desc);

-- Users that a webhook has named: what they are now is read from the provider, so the order of webhooks is no matter.
create table auth_user_hints (
  project_id uuid not null,
  user_id uuid not null,
  version integer not null default 1,
  primary key (project_id, user_id)
);

-- One log for the copying of users, whichever provider has them: a project is in one of the two only. This is the one
-- thing here that reads a table of the embedded provider, whose migrations therefore come first.
create view auth_user_log as
  select seq, project_id, user_id, kind, user_json, occurred_at from stack_user_changes
  union all
  select seq, project_id, user_id, kind, user_json, occurred_at from auth_user_changes;
