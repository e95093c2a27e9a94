-- The embedded auth provider: its projects, keys, users, sessions, and what it has to send. Only src/auth-provider
-- reads and writes these tables, except that users-sync also reads stack_user_changes.

create table stack_projects (
  id uuid primary key,
  display_name text not null,
  description text,
  -- The integration client that made it and may hand it over; null once a person owns it.
  provisioned_by text,
  owner_team_id uuid,
  is_production_mode boolean not null default false,
  allow_localhost boolean not null default true,
  credential_enabled boolean not null default true,
  sign_up_enabled boolean not null default true,
  client_user_deletion_enabled boolean not null default false,
  require_publishable_client_key boolean not null default false,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- Provisioning that is repeated because its answer was lost replaces what the first try made.
  provision_attempt text
);
create unique index stack_projects_by_attempt on stack_projects (provisioned_by, provision_attempt);

-- Of keys only hashes are kept, and the last four characters for people to recognise them by.
create table stack_key_sets (
  id uuid primary key,
  project_id uuid not null references stack_projects on delete cascade,
  description text not null,
  publishable_hash bytea unique,
  publishable_last_four text,
  secret_hash bytea unique,
  secret_last_four text,
  admin_hash bytea unique,
  admin_last_four text,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  revoked_at timestamptz
);
create index stack_key_sets_of_project on stack_key_sets (project_id, created_at, id);

create table stack_domains (
  project_id uuid not null references stack_projects on delete cascade,
  domain text not null,
  handler_path text not null default '/handler',
  created_at timestamptz not null default now(),
  primary key (project_id, domain)
);

create table stack_oauth_providers (
  project_id uuid not null references stack_projects on delete cascade,
  id text not null,
  type text not null check (type in ('shared', 'standard')),
  client_id text,
  -- Sealed with the key file.
  client_secret bytea,
  facebook_config_id text,
  microsoft_tenant_id text,
  created_at timestamptz not null default now(),
  primary key (project_id, id)
);

create table stack_users (
  id uuid primary key,
  project_id uuid not null references stack_projects on delete cascade,
  display_name text,
  primary_email text,
  primary_email_verified boolean not null default false,
  primary_email_auth_enabled boolean not null default false,
  -- The id of the address as a contact channel; an address that replaces another one gets a new id.
  email_channel_id uuid not null default gen_random_uuid(),
  profile_image_url text,
  client_metadata jsonb,
  client_read_only_metadata jsonb,
  server_metadata jsonb,
  -- argon2id in the PHC form.
  password_hash text,
  is_anonymous boolean not null default false,
  restricted_by_admin boolean not null default false,
  restricted_by_admin_reason text,
  restricted_by_admin_private_details text,
  country_code text,
  risk_scores jsonb not null default '{"sign_up":{"bot":0,"free_trial_abuse":0}}',
  selected_team_id uuid,
  signed_up_at timestamptz not null default now(),
  last_active_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index stack_users_in_order on stack_users (project_id, signed_up_at, id);
-- An address that people sign in with belongs to one user of a project; otherwise addresses may repeat.
create unique index stack_users_by_login on stack_users (project_id, primary_email) where primary_email_auth_enabled;
create index stack_users_by_email on stack_users (project_id, primary_email);

-- Every change of a user, in the order of the commits of its project: whoever writes holds the project's row.
create table stack_user_changes (
  seq bigint generated always as identity primary key,
  project_id uuid not null references stack_projects on delete cascade,
  user_id uuid not null,
  kind text not null check (kind in ('created', 'updated', 'deleted')),
  user_json jsonb not null,
  occurred_at timestamptz not null default now()
);
create index stack_user_changes_of_project on stack_user_changes (project_id, seq);
create index stack_user_changes_of_user on stack_user_changes (user_id, seq);

create table stack_sessions (
  id uuid primary key,
  project_id uuid not null references stack_projects on delete cascade,
  user_id uuid not null references stack_users on delete cascade,
  is_impersonation boolean not null default false,
  -- Which of the refresh tokens is the current one; the one after it is issued, and becomes current when it is used.
  generation integer not null default 0,
  created_at timestamptz not null default now(),
  last_used_at timestamptz not null default now(),
  last_used_from text,
  expires_at timestamptz not null
);
create index stack_sessions_of_user on stack_sessions (user_id, created_at);
create index stack_sessions_by_expiry on stack_sessions (expires_at);

create table stack_refresh_tokens (
  token_hash bytea primary key,
  session_id uuid not null references stack_sessions on delete cascade,
  generation integer not null,
  retired_at timestamptz,
  unique (session_id, generation)
);

create table stack_signing_keys (
  kid text primary key,
  project_id uuid not null references stack_projects on delete cascade,
  -- Restricted and anonymous users have keys of their own, so that whoever trusts the plain key set refuses them.
  audience text not null check (audience in ('plain', 'restricted', 'anonymous')),
  public_jwk jsonb not null,
  -- Sealed with the key file.
  private_jwk bytea not null,
  created_at timestamptz not null default now(),
  signs_from timestamptz not null,
  -- From then on it is not published any more.
  expires_at timestamptz
);
create index stack_signing_keys_of_project on stack_signing_keys (project_id, audience, signs_from);

create table stack_codes (
  id uuid primary key,
  project_id uuid not null references stack_projects on delete cascade,
  kind text not null check (kind in ('password_reset', 'email_verification', 'project_transfer')),
  code_hash bytea not null unique,
  user_id uuid references stack_users on delete cascade,
  -- What the code was sent for: an address that was changed since makes it void.
  email text,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  used_at timestamptz
);
create index stack_codes_by_expiry on stack_codes (expires_at);
create index stack_codes_of_user on stack_codes (user_id);

create table stack_teams (
  id uuid primary key,
  project_id uuid not null references stack_projects on delete cascade,
  display_name text not null,
  created_at timestamptz not null default now()
);
create table stack_team_members (
  team_id uuid not null references stack_teams on delete cascade,
  user_id uuid not null references stack_users on delete cascade,
  primary key (team_id, user_id)
);
create index stack_teams_of_user on stack_team_members (user_id);
create index stack_projects_of_team on stack_projects (owner_team_id);
alter table stack_projects add foreign key (owner_team_id) references stack_teams;

create table stack_webhook_endpoints (
  id uuid primary key,
  project_id uuid not null references stack_projects on delete cascade,
  url text not null,
  description text not null default '',
  -- Sealed with the key file.
  secret bytea not null,
  created_at timestamptz not null default now(),
  failing_since timestamptz,
  disabled_at timestamptz
);
create index stack_webhook_endpoints_of_project on stack_webhook_endpoints (project_id);

create table stack_webhook_messages (
  id uuid primary key default gen_random_uuid(),
  endpoint_id uuid not null references stack_webhook_endpoints on delete cascade,
  seq bigint not null,
  -- Kept here as well: the log forgets what was superseded.
  body text not null,
  attempts integer not null default 0,
  due_at timestamptz not null default now(),
  delivered_at timestamptz,
  given_up_at timestamptz,
  last_error text,
  created_at timestamptz not null default now()
);
create index stack_webhook_messages_due on stack_webhook_messages (due_at)
  where delivered_at is null and given_up_at is null;
create index stack_webhook_messages_of_endpoint on stack_webhook_messages (endpoint_id, created_at);

-- The outbox. Bodies hold codes, so they are sealed with the key file.
create table stack_mails (
  id bigint generated always as identity primary key,
  project_id uuid not null references stack_projects on delete cascade,
  kind text not null check (kind in ('password_reset', 'email_verification')),
  recipient text not null,
  subject text not null,
  body bytea not null,
  created_at timestamptz not null default now(),
  attempts integer not null default 0,
  due_at timestamptz not null default now(),
  sent_at timestamptz,
  given_up_at timestamptz,
  last_error text
);
create index stack_mails_due on stack_mails (due_at) where sent_at is null and given_up_at is null;

-- Somebody who is signed in to the provider's own pages; the cookie itself is not kept.
create table stack_page_sessions (
  token_hash bytea primary key,
  user_id uuid not null references stack_users on delete cascade,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index stack_page_sessions_of_user on stack_page_sessions (user_id);

-- The provider's own project: its users are the people who own projects. Known outside as `internal`.
-- Links for its users lead to the provider's own pages, never to somebody's localhost.
insert into stack_projects (id, display_name, description, allow_localhost)
values ('00000000-0000-4000-8000-000000000001', 'Catnap Auth', 'People who own projects of this provider.', false);
