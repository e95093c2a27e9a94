-- The logical replication slots that a branch's server last reported; null until it was asked.
alter table branches add column replication_slots jsonb;
