-- Accounts and what they sign in with, and the projects that they own.

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
  deleting_at timestamptz,
  -- Counters of one month, which it names.
  usage jsonb not null default '{}'
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

-- Sign-ins of the console. Of their tokens, too, only hashes are kept. A sign-in lasts no longer than its key.
create table console_sessions (
  token_hash bytea primary key,
  api_key_id bigint not null references api_keys on delete cascade,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index console_sessions_of_key on console_sessions (api_key_id, created_at desc);

-- Links that sign somebody in once.
create table console_links (
  token_hash bytea primary key,
  api_key_id bigint not null references api_keys on delete cascade,
  expires_at timestamptz not null
);

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
