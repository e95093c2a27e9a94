-- What a compute was busy with when it was last asked, by the loop that puts computes to sleep.
alter table endpoints add column work_seen jsonb;
