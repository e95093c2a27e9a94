import { describe, expect, test } from 'vitest';
import { renderHba, renderServerConfig, type ServerFacts } from './server-config.ts';

const facts: ServerFacts = {
  major: 17,
  dataDirectory: '/home/projects/p/branches/b/pgdata',
  socketDirectory: "/home/it's/s/abcdefgh",
  hbaFile: '/home/projects/p/endpoints/e/pg_hba.conf',
  label: 'ep-x',
  sessionTempBytes: null,
  replicationDirectory: '/home/s/ijklmnop',
  follows: null,
};

/** The effective settings of such a file: the last line for each one. */
function effective(text: string): Map<string, string> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(lines.map((line) => line.split(' = ', 2) as [string, string]));
}

describe('postgresql.conf', () => {
  test('the caller’s settings win over defaults, the driver’s over both', () => {
    const asked = { shared_buffers: '64MB', fsync: 'off', listen_addresses: '*', hba_file: '/tmp/x', work_mem: '5MB' };
    const settings = effective(renderServerConfig(facts, asked));
    expect(settings.get('shared_buffers')).toBe("'64MB'");
    expect(settings.get('work_mem')).toBe("'5MB'");
    expect(settings.get('fsync')).toBe("'on'");
    expect(settings.get('listen_addresses')).toBe("''");
    expect(settings.get('hba_file')).toBe(`'${facts.hbaFile}'`);
  });

  test('values are quoted, and one that spans lines is refused', () => {
    const settings = effective(renderServerConfig(facts, { search_path: `"$user", 'a\\b'` }));
    expect(settings.get('search_path')).toBe(`'"$user", ''a\\\\b'''`);
    expect(settings.get('unix_socket_directories')).toBe(`'"/home/it''s/s/abcdefgh", "/home/s/ijklmnop"'`);
    for (const value of ["x'\nfsync = off", 'a\rb', 'a\0b']) {
      expect(() => renderServerConfig(facts, { work_mem: value })).toThrow(/not the value/);
    }
  });

  test.each(['a b', 'a=b', '', "x'", 'fsync\n', 'include', 'include_dir', 'INCLUDE_IF_EXISTS', 'a.b.c'])(
    'refuses %j as a name',
    (name) => {
      expect(() => renderServerConfig(facts, { [name]: 'x' })).toThrow(/not the name/);
    },
  );

  test('a replica follows its primary, and listens for clients only', () => {
    const follows = {
      socketDirectory: "/home/it's/s/ijklmnop",
      slot: 'ep_x',
      passwordFile: '/home/e/replication.pass',
    };
    const text = renderServerConfig({ ...facts, replicationDirectory: null, follows }, { primary_conninfo: 'x' });
    const lines = text.split('\n');
    expect(lines.findLast((line) => line.startsWith('primary_conninfo'))).toBe(
      `primary_conninfo = 'host=''/home/it\\\\''s/s/ijklmnop'' port=''5432'' user=''catnap_replication'' ` +
        `passfile=''/home/e/replication.pass'' application_name=''ep_x'' connect_timeout=''5'''`,
    );
    expect(lines).toContain("primary_slot_name = 'ep_x'");
    expect(lines).toContain("unix_socket_directories = '/home/it''s/s/abcdefgh'");
  });

  test('settings of extensions have a dot', () => {
    const settings = effective(renderServerConfig(facts, { 'pg_stat_statements.max': '100' }));
    expect(settings.get('pg_stat_statements.max')).toBe("'100'");
  });

  test('temporary files are bounded here only where no disk does it', () => {
    const bounded = effective(
      renderServerConfig({ ...facts, sessionTempBytes: 20 * 1024 ** 3 }, { temp_file_limit: '-1' }),
    );
    expect(bounded.get('temp_file_limit')).toBe("'20971520kB'");
    const huge = effective(renderServerConfig({ ...facts, sessionTempBytes: 1024 ** 5 }, {}));
    expect(huge.get('temp_file_limit')).toBe("'2147483647kB'");
    expect(renderServerConfig(facts, {})).not.toContain('temp_file_limit');
  });

  test('only majors that know it are told about ALTER SYSTEM', () => {
    expect(renderServerConfig({ ...facts, major: 16 }, {})).not.toContain('allow_alter_system');
    expect(renderServerConfig(facts, {})).toContain("allow_alter_system = 'off'");
  });
});

test('pg_hba.conf lets Catnap into its database only, and nobody in without SCRAM', () => {
  expect(renderHba().trim().split('\n')).toEqual([
    'local catnap catnap_admin scram-sha-256',
    'local all catnap_admin reject',
    'local catnap all reject',
    'local replication catnap_replication scram-sha-256',
    'local replication all reject',
    'local all catnap_replication reject',
    'local all all scram-sha-256',
  ]);
});
