-- When the password was last reset over the API: whoever has logged in before is logged out.
alter table roles add column reset_at timestamptz;
