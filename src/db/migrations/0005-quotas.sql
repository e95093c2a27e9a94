-- What proxies have sent to clients. Each report is added here, and moved to the counters by the loop that meters, so
-- that a proxy never waits for a project that a command holds; for the same reason nothing references the project.
create table transfers (
  project_id text not null,
  branch_id text not null,
  bytes bigint not null
);
create index transfers_of_project on transfers (project_id);

-- The last report of each proxy process. A report that is sent again, because its answer was lost, does not count again.
create table transfer_reports (
  reporter uuid primary key,
  sequence bigint not null,
  reported_at timestamptz not null default now()
);

alter table consumption_hours add column transfer_bytes double precision not null default 0;
