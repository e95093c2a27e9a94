import { describe, expect, test } from 'vitest';
import { renderHba, renderServerConfig, type ServerFacts } from './server-config.ts';

const facts: ServerFacts = {
  major: 17,
  dataDirectory: '/home/projects/p/branches/b/pgdata',
  socketDirectory: "/home/it's/s/abcdefgh",
  hbaFile: '/home/projects/p/endpoints/e/pg_hba.conf',
  label: 'ep-x',
};

/** What counts in such a file: the last line about each setting. */
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
    expect(settings.get('unix_socket_directories')).toBe("'/home/it''s/s/abcdefgh'");
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

  test('settings of extensions have a dot', () => {
    const settings = effective(renderServerConfig(facts, { 'pg_stat_statements.max': '100' }));
    expect(settings.get('pg_stat_statements.max')).toBe("'100'");
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
    'local all all scram-sha-256',
  ]);
});
