-- Data of a branch or snapshot that somebody brings from a backup, while an operation waits for it.
create table deliveries (
  operation_id uuid primary key references operations on delete cascade,
  project_id text not null references projects on delete cascade,
  -- The branch or snapshot, here and in the backup.
  data_id text not null,
  source_id text not null,
  -- Which backup and which moment: a restore that was cut off is continued with the same.
  origin jsonb not null,
  -- One of the two, once it has come to its end.
  receipt jsonb,
  failure text,
  check (receipt is null or failure is null)
);

create index deliveries_of_project on deliveries (project_id);
