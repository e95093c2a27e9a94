alter table backup_histories drop column behind_since;
