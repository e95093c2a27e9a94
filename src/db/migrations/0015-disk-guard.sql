-- What is done about a compute while the disk is full: its writes are off, or it is suspended and stays so.
alter table endpoints add column disk_guard text check (disk_guard in ('read_only', 'held'));

create index endpoints_disk_guard on endpoints (id) where disk_guard is not null;
