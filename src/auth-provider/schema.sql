-- What all migrations in src/auth-provider/migrations come to, for reading and for review.
-- Written by `npm run generate`; do not edit.

create table stack_codes (
  id uuid not null,
  project_id uuid not null,
  kind text not null,
  code_hash bytea not null,
  user_id uuid,
  email text,
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone not null,
  used_at timestamp with time zone,
  constraint stack_codes_pkey PRIMARY KEY (id),
  constraint stack_codes_code_hash_key UNIQUE (code_hash),
  constraint stack_codes_project_id_fkey FOREIGN KEY (project_id) REFERENCES stack_projects(id) ON DELETE CASCADE,
  constraint stack_codes_user_id_fkey FOREIGN KEY (user_id) REFERENCES stack_users(id) ON DELETE CASCADE,
  constraint stack_codes_kind_check CHECK ((kind = ANY (ARRAY['password_reset'::text, 'email_verification'::text, 'project_transfer'::text])))
);
CREATE INDEX stack_codes_by_expiry ON catnap.stack_codes USING btree (expires_at);
CREATE INDEX stack_codes_of_user ON catnap.stack_codes USING btree (user_id);

create table stack_domains (
  project_id uuid not null,
  domain text not null,
  handler_path text default '/handler'::text not null,
  created_at timestamp with time zone default now() not null,
  constraint stack_domains_pkey PRIMARY KEY (project_id, domain),
  constraint stack_domains_project_id_fkey FOREIGN KEY (project_id) REFERENCES stack_projects(id) ON DELETE CASCADE
);

create table stack_key_sets (
  id uuid not null,
  project_id uuid not null,
  description text not null,
  publishable_hash bytea,
  publishable_last_four text,
  secret_hash bytea,
  secret_last_four text,
  admin_hash bytea,
  admin_last_four text,
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone not null,
  revoked_at timestamp with time zone,
  constraint stack_key_sets_pkey PRIMARY KEY (id),
  constraint stack_key_sets_admin_hash_key UNIQUE (admin_hash),
  constraint stack_key_sets_publishable_hash_key UNIQUE (publishable_hash),
  constraint stack_key_sets_secret_hash_key UNIQUE (secret_hash),
  constraint stack_key_sets_project_id_fkey FOREIGN KEY (project_id) REFERENCES stack_projects(id) ON DELETE CASCADE
);
CREATE INDEX stack_key_sets_of_project ON catnap.stack_key_sets USING btree (project_id, created_at, id);

create table stack_mails (
  id bigint generated always as identity not null,
  project_id uuid not null,
  kind text not null,
  recipient text not null,
  subject text not null,
  body bytea not null,
  created_at timestamp with time zone default now() not null,
  attempts integer default 0 not null,
  due_at timestamp with time zone default now() not null,
  sent_at timestamp with time zone,
  given_up_at timestamp with time zone,
  last_error text,
  constraint stack_mails_pkey PRIMARY KEY (id),
  constraint stack_mails_project_id_fkey FOREIGN KEY (project_id) REFERENCES stack_projects(id) ON DELETE CASCADE,
  constraint stack_mails_kind_check CHECK ((kind = ANY (ARRAY['password_reset'::text, 'email_verification'::text])))
);
CREATE INDEX stack_mails_due ON catnap.stack_mails USING btree (due_at) WHERE ((sent_at IS NULL) AND (given_up_at IS NULL));

create table stack_oauth_accounts (
  id uuid not null,
  project_id uuid not null,
  user_id uuid not null,
  provider_id text not null,
  issuer text not null,
  account_id text not null,
  email text,
  created_at timestamp with time zone default now() not null,
  constraint stack_oauth_accounts_pkey PRIMARY KEY (id),
  constraint stack_oauth_accounts_project_id_provider_id_issuer_account__key UNIQUE (project_id, provider_id, issuer, account_id),
  constraint stack_oauth_accounts_project_id_fkey FOREIGN KEY (project_id) REFERENCES stack_projects(id) ON DELETE CASCADE,
  constraint stack_oauth_accounts_user_id_fkey FOREIGN KEY (user_id) REFERENCES stack_users(id) ON DELETE CASCADE
);
CREATE INDEX stack_oauth_accounts_of_user ON catnap.stack_oauth_accounts USING btree (user_id, created_at);

create table stack_oauth_providers (
  project_id uuid not null,
  id text not null,
  client_id text not null,
  client_secret bytea not null,
  microsoft_tenant_id text,
  created_at timestamp with time zone default now() not null,
  constraint stack_oauth_providers_pkey PRIMARY KEY (project_id, id),
  constraint stack_oauth_providers_project_id_fkey FOREIGN KEY (project_id) REFERENCES stack_projects(id) ON DELETE CASCADE
);

create table stack_oauth_visits (
  id uuid not null,
  project_id uuid not null,
  provider_id text not null,
  user_id uuid,
  state_hash bytea not null,
  redirect_uri text not null,
  after_callback_redirect_url text,
  app_state text not null,
  code_challenge text not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  returned_at timestamp with time zone,
  identity jsonb,
  code_hash bytea,
  code_expires_at timestamp with time zone,
  redeemed_at timestamp with time zone,
  constraint stack_oauth_visits_pkey PRIMARY KEY (id),
  constraint stack_oauth_visits_code_hash_key UNIQUE (code_hash),
  constraint stack_oauth_visits_state_hash_key UNIQUE (state_hash),
  constraint stack_oauth_visits_project_id_fkey FOREIGN KEY (project_id) REFERENCES stack_projects(id) ON DELETE CASCADE,
  constraint stack_oauth_visits_user_id_fkey FOREIGN KEY (user_id) REFERENCES stack_users(id) ON DELETE CASCADE
);
CREATE INDEX stack_oauth_visits_by_expiry ON catnap.stack_oauth_visits USING btree (expires_at);

create table stack_page_sessions (
  token_hash bytea not null,
  user_id uuid not null,
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone not null,
  constraint stack_page_sessions_pkey PRIMARY KEY (token_hash),
  constraint stack_page_sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES stack_users(id) ON DELETE CASCADE
);
CREATE INDEX stack_page_sessions_of_user ON catnap.stack_page_sessions USING btree (user_id);

create table stack_projects (
  id uuid not null,
  display_name text not null,
  description text,
  provisioned_by text,
  owner_team_id uuid,
  is_production_mode boolean default false not null,
  allow_localhost boolean default true not null,
  credential_enabled boolean default true not null,
  sign_up_enabled boolean default true not null,
  client_user_deletion_enabled boolean default false not null,
  require_publishable_client_key boolean default false not null,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone default now() not null,
  provision_attempt text,
  constraint stack_projects_pkey PRIMARY KEY (id),
  constraint stack_projects_owner_team_id_fkey FOREIGN KEY (owner_team_id) REFERENCES stack_teams(id)
);
CREATE UNIQUE INDEX stack_projects_by_attempt ON catnap.stack_projects USING btree (provisioned_by, provision_attempt);
CREATE INDEX stack_projects_of_team ON catnap.stack_projects USING btree (owner_team_id);

create table stack_refresh_tokens (
  token_hash bytea not null,
  session_id uuid not null,
  generation integer not null,
  retired_at timestamp with time zone,
  constraint stack_refresh_tokens_pkey PRIMARY KEY (token_hash),
  constraint stack_refresh_tokens_session_id_generation_key UNIQUE (session_id, generation),
  constraint stack_refresh_tokens_session_id_fkey FOREIGN KEY (session_id) REFERENCES stack_sessions(id) ON DELETE CASCADE
);

create table stack_sessions (
  id uuid not null,
  project_id uuid not null,
  user_id uuid not null,
  is_impersonation boolean default false not null,
  generation integer default 0 not null,
  created_at timestamp with time zone default now() not null,
  last_used_at timestamp with time zone default now() not null,
  last_used_from text,
  expires_at timestamp with time zone not null,
  constraint stack_sessions_pkey PRIMARY KEY (id),
  constraint stack_sessions_project_id_fkey FOREIGN KEY (project_id) REFERENCES stack_projects(id) ON DELETE CASCADE,
  constraint stack_sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES stack_users(id) ON DELETE CASCADE
);
CREATE INDEX stack_sessions_by_expiry ON catnap.stack_sessions USING btree (expires_at);
CREATE INDEX stack_sessions_of_user ON catnap.stack_sessions USING btree (user_id, created_at);

create table stack_signing_keys (
  kid text not null,
  project_id uuid not null,
  audience text not null,
  public_jwk jsonb not null,
  private_jwk bytea not null,
  created_at timestamp with time zone default now() not null,
  signs_from timestamp with time zone not null,
  expires_at timestamp with time zone,
  constraint stack_signing_keys_pkey PRIMARY KEY (kid),
  constraint stack_signing_keys_project_id_fkey FOREIGN KEY (project_id) REFERENCES stack_projects(id) ON DELETE CASCADE,
  constraint stack_signing_keys_audience_check CHECK ((audience = ANY (ARRAY['plain'::text, 'restricted'::text, 'anonymous'::text])))
);
CREATE INDEX stack_signing_keys_of_project ON catnap.stack_signing_keys USING btree (project_id, audience, signs_from);

create table stack_team_members (
  team_id uuid not null,
  user_id uuid not null,
  constraint stack_team_members_pkey PRIMARY KEY (team_id, user_id),
  constraint stack_team_members_team_id_fkey FOREIGN KEY (team_id) REFERENCES stack_teams(id) ON DELETE CASCADE,
  constraint stack_team_members_user_id_fkey FOREIGN KEY (user_id) REFERENCES stack_users(id) ON DELETE CASCADE
);
CREATE INDEX stack_teams_of_user ON catnap.stack_team_members USING btree (user_id);

create table stack_teams (
  id uuid not null,
  project_id uuid not null,
  display_name text not null,
  created_at timestamp with time zone default now() not null,
  constraint stack_teams_pkey PRIMARY KEY (id),
  constraint stack_teams_project_id_fkey FOREIGN KEY (project_id) REFERENCES stack_projects(id) ON DELETE CASCADE
);

create table stack_user_changes (
  seq bigint generated always as identity not null,
  project_id uuid not null,
  user_id uuid not null,
  kind text not null,
  user_json jsonb not null,
  occurred_at timestamp with time zone default now() not null,
  constraint stack_user_changes_pkey PRIMARY KEY (seq),
  constraint stack_user_changes_project_id_fkey FOREIGN KEY (project_id) REFERENCES stack_projects(id) ON DELETE CASCADE,
  constraint stack_user_changes_kind_check CHECK ((kind = ANY (ARRAY['created'::text, 'updated'::text, 'deleted'::text])))
);
CREATE INDEX stack_user_changes_of_project ON catnap.stack_user_changes USING btree (project_id, seq);
CREATE INDEX stack_user_changes_of_user ON catnap.stack_user_changes USING btree (user_id, seq);

create table stack_users (
  id uuid not null,
  project_id uuid not null,
  display_name text,
  primary_email text,
  primary_email_verified boolean default false not null,
  primary_email_auth_enabled boolean default false not null,
  email_channel_id uuid default gen_random_uuid() not null,
  profile_image_url text,
  client_metadata jsonb,
  client_read_only_metadata jsonb,
  server_metadata jsonb,
  password_hash text,
  is_anonymous boolean default false not null,
  restricted_by_admin boolean default false not null,
  restricted_by_admin_reason text,
  restricted_by_admin_private_details text,
  country_code text,
  risk_scores jsonb default '{"sign_up": {"bot": 0, "free_trial_abuse": 0}}'::jsonb not null,
  selected_team_id uuid,
  signed_up_at timestamp with time zone default now() not null,
  last_active_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone default now() not null,
  constraint stack_users_pkey PRIMARY KEY (id),
  constraint stack_users_project_id_fkey FOREIGN KEY (project_id) REFERENCES stack_projects(id) ON DELETE CASCADE
);
CREATE INDEX stack_users_by_email ON catnap.stack_users USING btree (project_id, primary_email);
CREATE UNIQUE INDEX stack_users_by_login ON catnap.stack_users USING btree (project_id, primary_email) WHERE primary_email_auth_enabled;
CREATE INDEX stack_users_in_order ON catnap.stack_users USING btree (project_id, signed_up_at, id);

create table stack_webhook_endpoints (
  id uuid not null,
  project_id uuid not null,
  url text not null,
  description text default ''::text not null,
  secret bytea not null,
  created_at timestamp with time zone default now() not null,
  failing_since timestamp with time zone,
  disabled_at timestamp with time zone,
  constraint stack_webhook_endpoints_pkey PRIMARY KEY (id),
  constraint stack_webhook_endpoints_project_id_fkey FOREIGN KEY (project_id) REFERENCES stack_projects(id) ON DELETE CASCADE
);
CREATE INDEX stack_webhook_endpoints_of_project ON catnap.stack_webhook_endpoints USING btree (project_id);

create table stack_webhook_messages (
  id uuid default gen_random_uuid() not null,
  endpoint_id uuid not null,
  seq bigint not null,
  body text not null,
  attempts integer default 0 not null,
  due_at timestamp with time zone default now() not null,
  delivered_at timestamp with time zone,
  given_up_at timestamp with time zone,
  last_error text,
  created_at timestamp with time zone default now() not null,
  constraint stack_webhook_messages_pkey PRIMARY KEY (id),
  constraint stack_webhook_messages_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES stack_webhook_endpoints(id) ON DELETE CASCADE
);
CREATE INDEX stack_webhook_messages_due ON catnap.stack_webhook_messages USING btree (due_at) WHERE ((delivered_at IS NULL) AND (given_up_at IS NULL));
CREATE INDEX stack_webhook_messages_of_endpoint ON catnap.stack_webhook_messages USING btree (endpoint_id, created_at);
