import { expect, it } from 'vitest';
import { transactionStep } from './transaction-step.ts';

it.each(['begin', 'BEGIN ISOLATION LEVEL SERIALIZABLE', ' -- first\n/* then */start  transaction', 'begin;'])(
  'begins a transaction: %j',
  (text) => {
    expect(transactionStep(text)).toBe('begin');
  },
);

it.each(['commit', 'END', 'rollback and chain', 'abort work', "/**/prepare transaction 'x'", 'rollback work'])(
  'ends a transaction: %j',
  (text) => {
    expect(transactionStep(text)).toBe('end');
  },
);

it.each([
  'select 1',
  'beginning',
  '-- begin',
  'rollback to a',
  'ROLLBACK WORK TO SAVEPOINT a',
  'prepare p as select 1',
  'start',
  'ended$',
  `/* ${'*'.repeat(100_000)}`,
  ' '.repeat(1_000_000),
])('does neither: %.40j', (text) => {
  expect(transactionStep(text)).toBeNull();
});
