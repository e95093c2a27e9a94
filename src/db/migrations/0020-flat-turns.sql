-- The loops ask these every few seconds, however many branches and projects sleep; each looked through all of them.
-- When the history of a branch is to be kept again while it sleeps; a wake and a nap make it due.
alter table branches add column history_due_at timestamptz not null default now();

create index branches_history_due on branches (history_due_at) where deleting_at is null;
create index branches_history_unknown on branches (id) where history is null and deleting_at is null;
create index branches_slots on branches (id) where replication_slots is not null;
create index projects_limited on projects (id) where settings -> 'quota' is not null and deleting_at is null;
