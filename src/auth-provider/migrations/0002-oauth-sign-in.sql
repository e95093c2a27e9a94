-- Signing in with OAuth providers: only with credentials of the project's own, so a provider without them is gone.

delete from stack_oauth_providers where type = 'shared';
alter table stack_oauth_providers
  drop column type,
  drop column facebook_config_id,
  alter column client_id set not null,
  alter column client_secret set not null;

-- Accounts elsewhere that people sign in with. Ids are unique at their issuer only.
create table stack_oauth_accounts (
  id uuid primary key,
  project_id uuid not null references stack_projects on delete cascade,
  user_id uuid not null references stack_users on delete cascade,
  provider_id text not null,
  issuer text not null,
  account_id text not null,
  email text,
  created_at timestamptz not null default now(),
  unique (project_id, provider_id, issuer, account_id)
);
create index stack_oauth_accounts_of_user on stack_oauth_accounts (user_id, created_at);

-- Each visit to an OAuth provider, from the application and back to it. The state and the code are stored as hashes.
create table stack_oauth_visits (
  id uuid primary key,
  project_id uuid not null references stack_projects on delete cascade,
  provider_id text not null,
  -- The signed-in user whose account is to be connected; null for a sign-in.
  user_id uuid references stack_users on delete cascade,
  state_hash bytea not null unique,
  -- What the application gave: where to return, its own state and its PKCE challenge.
  redirect_uri text not null,
  after_callback_redirect_url text,
  app_state text not null,
  code_challenge text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  returned_at timestamptz,
  -- Who came back, and the code with which the application collects the session.
  identity jsonb,
  code_hash bytea unique,
  code_expires_at timestamptz,
  redeemed_at timestamptz
);
create index stack_oauth_visits_by_expiry on stack_oauth_visits (expires_at);
