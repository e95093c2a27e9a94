-- What was deleted waits, hidden by `deleting_at`, until it is recovered or this time has come. Null while nothing is
-- deleted, and again once it is being removed for good.
alter table projects add column recoverable_until timestamptz;
alter table branches add column recoverable_until timestamptz,
  add column deletion_method text check (deletion_method in ('user', 'ttl'));
-- Of computes that were deleted with their branch, and come back with it.
alter table endpoints add column recoverable_until timestamptz;
create index projects_recoverable on projects (recoverable_until) where recoverable_until is not null;
create index branches_recoverable on branches (recoverable_until) where recoverable_until is not null;

-- Detached because its branch was deleted: taken up again when the branch is recovered.
alter table auth_integrations add column detached_with_branch boolean not null default false;
