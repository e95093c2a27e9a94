import { expect, test } from 'vitest';
import { createUnauthenticatedConnections } from './unauthenticated.ts';

function enterAll(max: { total: number; perAddress: number }, addresses: readonly string[]) {
  const ended: number[] = [];
  const connections = createUnauthenticatedConnections(max);
  const entered = addresses.map((address, index) => connections.enter(address, () => ended.push(index)));
  return { connections, ended, entered };
}

const flood = Array<string>(4).fill('192.0.2.1');

test('a flood ends its own oldest connections, and everybody gets in', () => {
  const { entered, ended } = enterAll({ total: 4, perAddress: 10 }, ['192.0.2.7', ...flood, '192.0.2.8', '192.0.2.1']);
  expect(entered).not.toContain(null);
  expect(ended).toEqual([1, 2, 3]);
});

test('one address makes room for itself', () => {
  expect(enterAll({ total: 100, perAddress: 2 }, ['192.0.2.7', ...flood]).ended).toEqual([1, 2]);
});

test('one that has left makes room, and leaving twice counts once', () => {
  const { connections, entered, ended } = enterAll({ total: 2, perAddress: 2 }, ['192.0.2.1', '192.0.2.2']);
  entered[0]?.();
  entered[0]?.();
  connections.enter('192.0.2.3');
  expect(ended).toEqual([]);
  connections.enter('192.0.2.4');
  expect(ended).toEqual([1]);
});

test('where none can be ended, the next one is refused', () => {
  const connections = createUnauthenticatedConnections({ total: 1, perAddress: 1 });
  const leave = connections.enter('192.0.2.1');
  expect(connections.enter('192.0.2.1')).toBeNull();
  expect(connections.enter('192.0.2.2')).toBeNull();
  leave?.();
  expect(connections.enter('192.0.2.2')).not.toBeNull();
});
