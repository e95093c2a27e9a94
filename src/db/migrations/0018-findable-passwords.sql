-- Finds roles by their passwords: byte 0 says that a stored password has a mark, which is the 16 bytes after it.
create index roles_password_mark on roles (substring(password from 2 for 16))
  where get_byte(password, 0) = 2 and dropped_at is null;
