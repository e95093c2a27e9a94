import { expect, it } from 'vitest';
import { RowOrder } from './row-order.ts';

const rows = (...ids: readonly string[]) => ids.map((id) => ({ id }));
const ids = (some: readonly { readonly id?: unknown }[]) => some.map(({ id }) => id);

it('rows without an order of their own come as the schedule has come to know them', () => {
  const order = new RowOrder();
  for (const id of ['c', 'a', 'b']) order.arrange(['insert into things values (1) returning *'], rows(id));
  const found = rows('new', 'a', 'b', 'c');
  order.arrange(['select * from things where x = ', ''], found);
  expect(ids(found)).toEqual(['c', 'a', 'b', 'new']);
});

it('rows in an order stay in it', () => {
  const order = new RowOrder();
  order.arrange(['select 1'], rows('b', 'a'));
  const found = rows('a', 'b');
  order.arrange(['select * from things where x = ', ' ORDER BY name'], found);
  expect(ids(found)).toEqual(['a', 'b']);
});
