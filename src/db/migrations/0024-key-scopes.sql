-- What a key may do beside what it reaches, and when it stops working. Keys that were made before may do everything.
alter table api_keys
  add column scope text not null default 'full' check (scope in ('full', 'read_only', 'branches', 'sql')),
  add column expires_at timestamptz;
