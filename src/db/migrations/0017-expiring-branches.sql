-- Whether the time of a branch has come is asked every few seconds, however many branches never expire.
create index branches_expiring on branches (expires_at) where expires_at is not null and deleting_at is null;
