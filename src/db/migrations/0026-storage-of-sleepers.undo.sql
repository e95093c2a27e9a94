drop index endpoints_reserved;

-- An older program knows hours alone, and goes on from `metered_until`. Months of many branches are too many hours: this
-- month comes back by day, those before it by month, each in the first hour that it has something of.
set local statement_timeout = 0;
create temporary table spans as
select project_id, branch_id, is_root, since, until, bytes, false as is_open from stored_spans
union all
select project_id, id, parent_id is null, metered_until, greatest(metered_until, now()), metered_size, true
from branches where metered_until is not null;

insert into consumption_hours as c (project_id, branch_id, hour, is_root, storage_byte_seconds, logical_bytes)
select project_id, branch_id, date_trunc('hour', greatest(since, begun), 'UTC'), is_root,
  sum(bytes * extract(epoch from least(until, ended) - greatest(since, begun))), max(bytes)
from (
  select spans.*, begun at time zone 'UTC' as begun, (begun + interval '1 month') at time zone 'UTC' as ended
  from spans, generate_series(date_trunc('month', since at time zone 'UTC'),
    date_trunc('month', now() at time zone 'UTC') - interval '1 month', interval '1 month') as begun
  union all
  select spans.*, begun at time zone 'UTC', (begun + interval '1 day') at time zone 'UTC'
  from spans, generate_series(
    greatest(date_trunc('day', since at time zone 'UTC'), date_trunc('month', now() at time zone 'UTC')),
    until at time zone 'UTC', interval '1 day') as begun
) pieces
where begun < until
group by 1, 2, 3, 4
on conflict (branch_id, hour) do update set
  storage_byte_seconds = c.storage_byte_seconds + excluded.storage_byte_seconds,
  logical_bytes = greatest(c.logical_bytes, excluded.logical_bytes);

-- The counter of the month has what ended; what goes on is added.
update projects p set usage = case when p.usage ->> 'period' = s.period
  then p.usage || jsonb_build_object('storage', coalesce((p.usage ->> 'storage')::float8, 0) + s.storage)
  else jsonb_build_object('period', s.period, 'storage', s.storage) end
from (
  select project_id, to_char(now() at time zone 'UTC', 'YYYY-MM') as period,
    sum(bytes * extract(epoch from until - greatest(since, date_trunc('month', until, 'UTC'))) / 3600)::float8 as storage
  from spans where is_open group by 1
) s where p.id = s.project_id;

update branches b set metered_until = s.until from spans s where s.is_open and s.branch_id = b.id;
drop table spans, stored_spans;
alter table branches drop column is_resized, drop column metered_size;
