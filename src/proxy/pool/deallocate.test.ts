/** Which texts are a `DEALLOCATE name`, and nothing else. */
import { expect, it } from 'vitest';
import { cstring } from '../protocol/wire.ts';
import { deallocatedName } from './deallocate.ts';

const nameIn = (text: string) => deallocatedName(cstring(text), 0, text.length + 1);

it.each([
  ['DEALLOCATE one', 'one'],
  ['deallocate prepare One;', 'one'],
  ['Deallocate\n"One ""two"""  ;', 'One "two"'],
  ['deallocate _pg3_0', '_pg3_0'],
])('%j', (text, name) => {
  expect(nameIn(text)).toBe(name);
});

it.each([
  'deallocate all',
  'DEALLOCATE PREPARE ALL',
  'deallocate one; select 1',
  'declare c cursor for select 1',
  'dea',
])('not %j', (text) => {
  expect(nameIn(text)).toBeNull();
});

it('not a text that goes on behind the bytes at hand, or is long', () => {
  expect(deallocatedName(cstring('deallocate one'), 0, 12)).toBeNull();
  expect(nameIn(`deallocate ${'x'.repeat(400)}`)).toBeNull();
});
