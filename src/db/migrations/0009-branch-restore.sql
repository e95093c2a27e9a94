-- Restore of a branch: the state it is in meanwhile, and when it last happened.
alter table branches drop constraint branches_current_state_check;
alter table branches add constraint branches_current_state_check
  check (current_state in ('init', 'resetting', 'ready'));
alter table branches add column last_reset_at timestamptz;
