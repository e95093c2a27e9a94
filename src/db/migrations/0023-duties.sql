-- Work that one of several workers does at a time: the loops that compare what should be with what is.
create table duties (
  name text primary key,
  worker_id text not null,
  held_until timestamptz not null
);

-- The installation, in one row: which key its secrets are sealed with. A Catnap that has another key is refused, before
-- it seals something that the others cannot open.
create table installation (
  is_the_one boolean primary key default true check (is_the_one),
  key_fingerprint bytea not null
);
