-- Queries of a project that people write in the console. They are kept as they are written, those that are open as tabs
-- and those that are not.
create table saved_queries (
  id text primary key,
  project_id text not null references projects on delete cascade,
  name text not null,
  query text not null,
  is_open boolean not null,
  -- Grows with each change: a change that was made to an older text is refused.
  revision int not null default 1,
  created_at timestamptz not null,
  updated_at timestamptz not null default now()
);
create index saved_queries_of_project on saved_queries (project_id, created_at);
