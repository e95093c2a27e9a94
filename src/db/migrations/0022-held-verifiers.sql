-- What the server holds for a role while a newer password is pending; null otherwise. A branch that is copied meanwhile
-- gets the older one with its data.
alter table roles add column held_verifier text;
