drop index projects_limited, branches_slots, branches_history_unknown;
-- Its index goes with it.
alter table branches drop column history_due_at;
