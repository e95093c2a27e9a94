-- Fields that were kept and shown without effect. What can have one value only is no longer stored.
alter table projects drop column provisioner;
alter table endpoints drop column provisioner, drop column pooler_mode;
update projects
set settings = (settings - 'audit_log_level') || '{"block_vpc_connections": false, "hipaa": false}'::jsonb;

-- Pooled hosts were open whatever this said. From now on `false` closes them.
update endpoints set pooler_enabled = true;
