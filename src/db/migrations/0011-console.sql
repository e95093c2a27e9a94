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

-- Whoever watches for changes asks for the latest ones.
create index operations_by_change on operations (updated_at);
