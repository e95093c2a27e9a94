/** Where the tables of a diagram stand. */
import { expect, test } from 'vitest';
import { boxWidth, layOut, type Reference } from '../../console/tables/diagram-layout.ts';

const reference = (from: string, to: string, columns = [`${to}_id`]): Reference => ({
  from,
  to,
  columns,
  references: ['id'],
});

const placesOf = (references: readonly Reference[]) =>
  new Map(layOut(references).boxes.map((box) => [box.name, box] as const));

test('a table stands to the right of everything that it refers to', () => {
  const references = [
    reference('orders', 'customers'),
    reference('items', 'orders'),
    reference('items', 'products'),
    reference('reviews', 'customers'),
  ];
  const places = placesOf(references);
  expect([...places.keys()].sort()).toEqual(['customers', 'items', 'orders', 'products', 'reviews']);
  for (const { from, to } of references) {
    expect([from, to, (places.get(from)?.x ?? 0) >= (places.get(to)?.x ?? 0) + boxWidth]).toEqual([from, to, true]);
  }
  expect(places.get('items')?.columns).toEqual(['orders_id', 'products_id']);
  expect(places.get('orders')?.columns).toEqual(['id', 'customers_id']);
});

test('no table covers another, and all are inside', () => {
  const many = Array.from({ length: 40 }, (_, n) => reference(`t${n}`, `t${Math.floor(n / 3)}`, [`c${n}`, 'd']));
  const { boxes, lines, width, height } = layOut(many);
  expect(lines).toHaveLength(40);
  const outside = boxes.filter(({ x, y, height: own }) => x + boxWidth > width || y + own > height);
  const covering = boxes.flatMap((a, index) =>
    boxes
      .slice(index + 1)
      .filter((b) => a.x === b.x && a.y < b.y + b.height && b.y < a.y + a.height)
      .map((b) => [a.name, b.name]),
  );
  expect({ outside, covering }).toEqual({ outside: [], covering: [] });
});

test('circles, and tables that refer to themselves, have a place', () => {
  const { boxes, lines } = layOut([reference('a', 'b'), reference('b', 'c'), reference('c', 'a'), reference('a', 'a')]);
  expect(boxes.map(({ name }) => name).sort()).toEqual(['a', 'b', 'c']);
  for (const line of lines) expect(line).toMatch(/^M[\d.]+ [\d.]+C([\d.-]+ ){5}[\d.-]+$/);
  expect(layOut([])).toEqual({ boxes: [], lines: [], width: 0, height: 0 });
});
