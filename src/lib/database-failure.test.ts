import { expect, test } from 'vitest';
import { databaseFailure } from './database-failure.ts';

const kindOf = (code: unknown) => databaseFailure(Object.assign(new Error('x'), { code }));

test('a connection that was never made, and what Postgres rolled back, kept nothing', () => {
  for (const code of ['ECONNREFUSED', 'ENOENT', 'CONNECT_TIMEOUT', '57P03', '53300', '40001', '57014']) {
    expect([code, kindOf(code)]).toEqual([code, 'not_begun']);
  }
});

test('a connection that broke may have kept a commit', () => {
  for (const code of ['CONNECTION_CLOSED', 'ECONNRESET', 'EPIPE', '57P01', '57P02', '08000', '08006', '08P01']) {
    expect([code, kindOf(code)]).toEqual([code, 'lost']);
  }
});

test('other failures are defects', () => {
  for (const thrown of [null, undefined, 'ECONNRESET', new Error('x'), { code: 8 }]) {
    expect(databaseFailure(thrown)).toBeNull();
  }
  for (const code of ['42601', '23505', '0800', 'x08006']) expect(kindOf(code)).toBeNull();
});
