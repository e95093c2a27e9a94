import { describe, expect, it } from 'vitest';
import { refusalOf, requirePgSettings } from './pg-settings.ts';

describe('pg_settings', () => {
  it.each(['work_mem', 'TimeZone', 'enable_seqscan', 'autovacuum_naptime', 'pg_stat_statements.track', 'max_wal_size'])(
    'lets an owner choose %s',
    (name) => {
      expect(requirePgSettings({ [name]: '1' }, 'f')).toEqual({ [name.toLowerCase()]: '1' });
    },
  );

  it.each([
    ['fsync', /lose or damage/],
    ['FSYNC', /lose or damage/],
    ['full_page_writes', /lose or damage/],
    ['archive_command', /run programs/],
    ['ssl_passphrase_command', /run programs/],
    ['restore_command', /run programs/],
    ['shared_preload_libraries', /libraries/],
    ['dynamic_library_path', /libraries/],
    ['data_directory', /files/],
    ['hba_file', /files/],
    ['temp_file_limit', /files/],
    ['listen_addresses', /reach/],
    ['unix_socket_directories', /reach/],
    ['unix_socket_permissions', /reach/],
    ['log_directory', /log/],
    ['logging_collector', /log/],
    ['max_connections', /size/],
    ['shared_buffers', /size/],
    ['primary_conninfo', /replication/],
    ['wal_level', /replication/],
    ['allow_system_table_mods', /reach/],
    ['no_such_thing', /not among/],
    ['include_dir', /files/],
    ['x = 1\nfsync', /not among/],
  ])('refuses %s by name, with the reason', (name, reason) => {
    expect(() => requirePgSettings({ [name]: 'on' }, 'body.endpoint.settings.pg_settings')).toThrow(reason);
    expect(() => requirePgSettings({ [name]: 'on' }, 'body.endpoint.settings.pg_settings')).toThrow(name);
  });

  it('refuses values that could not stand in one line', () => {
    expect(() => requirePgSettings({ work_mem: '4MB\nfsync=off' }, 'f')).toThrow(/one line/);
    expect(() => requirePgSettings({ work_mem: 'x'.repeat(1001) }, 'f')).toThrow(/1000/);
  });

  it('knows each setting one way only', () => {
    expect(refusalOf('work_mem')).toBeNull();
    expect(refusalOf('work_mem2')).not.toBeNull();
  });
});
