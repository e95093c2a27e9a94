alter table roles drop column held_verifier;
