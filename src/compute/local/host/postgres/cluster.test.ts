import { expect, test } from 'vitest';
import { requireAccount } from './cluster.ts';

test('a user without an entry in /etc/passwd is told what initdb needs', () => {
  expect(() => requireAccount()).not.toThrow();
  const unknown = () => {
    throw new Error('A system error occurred: uv_os_get_passwd returned ENOENT (no such file or directory)');
  };
  expect(() => requireAccount(unknown)).toThrow(/^uid \d+ has no entry in \/etc\/passwd, and initdb needs one: start/);
});
