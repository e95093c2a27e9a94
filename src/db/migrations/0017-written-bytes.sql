-- What a server says that it wrote: the position in its log goes on by a whole segment when a branch is copied.

alter table branches
  -- That sum at the last look; `metered_wal` is the position then.
  add column metered_wal_bytes double precision;
