-- A branch that keeps its size costs no writes: what it stores is worked out when somebody asks, from its size and the
-- time since when it has it. Only what has ended is on record.

-- Since `metered_until`, which is null while nothing is counted. What was metered so far was at the size of today.
alter table branches add column metered_size bigint;
update branches b set metered_size = b.logical_size,
  metered_until = case
    when b.logical_size is not null and b.deleting_at is null and p.deleting_at is null then b.metered_until end
from projects p where p.id = b.project_id and b.metered_until is not null;
-- A column, because the database keeps statistics of columns only: it must know how rare this is to use the index.
alter table branches
  add column is_resized boolean not null generated always as (logical_size is distinct from metered_size) stored;
create index branches_resized on branches (project_id) where is_resized and deleting_at is null;

-- Times of one size that went on for longer than an hour; shorter ones are in `consumption_hours`. A branch that is gone
-- keeps its spans, so that its project's add up.
create table stored_spans (
  project_id text not null references projects (id) on delete cascade,
  branch_id text not null,
  is_root boolean not null,
  since timestamptz not null,
  until timestamptz not null,
  bytes bigint not null,
  primary key (branch_id, since)
);
create index stored_spans_of_project on stored_spans (project_id, until);

-- Every start with a stated capacity asked all computes for this.
create index endpoints_reserved on endpoints (id) where reserved_cu is not null;
