import { expect, test } from 'vitest';
import type { ApiConfig } from '../kit/parts.ts';
import { requireDriver } from './good-driver.ts';

const config = (cannot: ApiConfig['cannot']) => ({ cannot }) as ApiConfig;
const replica = { endpoints: [{ type: 'read_write' }, { type: 'read_only' }] };

test('what the driver cannot do is refused with its own words, and nothing else is', () => {
  for (const asked of [replica, { initSource: 'schema-only' }, {}]) {
    expect(() => requireDriver(config({}), asked)).not.toThrow();
  }
  const cannot = config({ replicas: 'no replicas', empty_copies: 'no schema-only branches' });
  expect(() => requireDriver(cannot, replica)).toThrow('no replicas');
  expect(() => requireDriver(cannot, { initSource: 'schema-only' })).toThrow('no schema-only branches');
  expect(() => requireDriver(cannot, { endpoints: [{ type: 'read_write' }], initSource: 'parent-data' })).not.toThrow();
});
