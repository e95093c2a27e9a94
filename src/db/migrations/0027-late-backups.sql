-- Since when the machine has had something of a history that the store lacks; null while the store has all of it.
alter table backup_histories add column behind_since timestamptz;
