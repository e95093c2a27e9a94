-- Clients of the database port that wait until a person confirms them in the console.
create table waiting_logins (
  -- Of the token in the link; the token itself is known to the client alone.
  token_hash bytea primary key,
  client_address text not null,
  -- What counts as one client: the address, of IPv6 its first 64 bits.
  client_key text not null,
  -- What the client asked for; the person may choose something else.
  asked_role text not null,
  asked_database text not null,
  application_name text not null,
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null,
  decided_at timestamptz,
  -- The sign-in that decided; without it the decision does not count.
  api_key_id bigint references api_keys on delete cascade,
  -- Null when the login was refused.
  endpoint_id text references endpoints on delete cascade,
  role_name text,
  database_name text,
  -- When the client went on. A decision is used once.
  taken_at timestamptz
);
create index waiting_logins_of_client on waiting_logins (client_key) where decided_at is null;

-- Providers whose tokens log in to a project over HTTP.
create table project_key_sets (
  id uuid primary key,
  project_id text not null references projects on delete cascade,
  -- Null for all branches.
  branch_id text references branches on delete cascade,
  jwks_url text not null,
  provider_name text not null,
  jwt_audience text,
  role_names text[] not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index project_key_sets_of_project on project_key_sets (project_id);
create index project_key_sets_of_branch on project_key_sets (branch_id);

-- A role for people who only use an application: it may not make databases or roles.
alter table roles add column limited boolean not null default false;
