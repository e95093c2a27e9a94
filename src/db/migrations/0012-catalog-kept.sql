-- Whether the roles and databases on record are those that the branch's server held when it last stopped. Then a wake
-- need not ask it for them.
alter table branches add column catalog_kept boolean not null default false;
