import { expect, it } from 'vitest';
import { createLocalClientPermits } from './client-permits.ts';

it('a permit is released once, however often its release is called', () => {
  const clients = createLocalClientPermits(1);
  const release = clients.take('ep-a');
  expect(() => clients.take('ep-a')).toThrow('Too many connections to this endpoint. Please try again later.');
  clients.take('ep-b');
  release();
  release();
  clients.take('ep-a');
  expect(() => clients.take('ep-a')).toThrow();
});
