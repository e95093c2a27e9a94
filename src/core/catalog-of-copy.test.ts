import { expect, test } from 'vitest';
import { catalogOfCopy } from './catalog-of-copy.ts';
import type { CatalogSnapshot } from './catalog-snapshot.ts';

const role = (name: string, more: Partial<CatalogSnapshot['roles'][number]> = {}) => ({
  name,
  verifier: `${name} 1`,
  password: `sealed ${name}`,
  noLogin: false,
  protected: false,
  limited: false,
  applied: true,
  pending: false,
  droppedAt: null,
  ...more,
});
const database = (name: string, more: Partial<CatalogSnapshot['databases'][number]> = {}) => ({
  name,
  ownerName: 'owner',
  appliedName: name,
  pending: false,
  droppedAt: null,
  ...more,
});

const rows: CatalogSnapshot = {
  roles: [
    role('owner', { limited: true }),
    role('changed'),
    role('gone'),
    role('new', { applied: false, pending: true }),
    role('leaving', { pending: true, droppedAt: '2026-01-01T00:00:00.000Z' }),
  ],
  databases: [database('app'), database('gone'), database('leaving', { pending: true, droppedAt: '2026-01-01' })],
};
const seen = {
  roles: [
    { name: 'owner', verifier: 'owner 1' },
    { name: 'changed', verifier: 'changed 2' },
    { name: 'by sql', verifier: null },
    { name: 'leaving', verifier: 'leaving 1' },
  ],
  databases: [
    { name: 'app', ownerName: 'changed' },
    { name: 'leaving', ownerName: 'owner' },
  ],
};

test('at the head, the server corrects the rows, and what is pending stays so', () => {
  expect(catalogOfCopy(rows, seen, 'head')).toEqual({
    roles: [
      rows.roles[0],
      role('changed', { verifier: 'changed 2', password: null }),
      rows.roles[3],
      rows.roles[4],
      role('by sql', { verifier: null, password: null, noLogin: true }),
    ],
    databases: [database('app', { ownerName: 'changed' }), rows.databases[2]],
  });
});

test('in the past there is what the server reports, and passwords that are still right', () => {
  expect(catalogOfCopy(rows, seen, 'past')).toEqual({
    roles: [
      rows.roles[0],
      role('changed', { verifier: 'changed 2', password: null }),
      role('leaving'),
      role('by sql', { verifier: null, password: null, noLogin: true }),
    ],
    databases: [database('app', { ownerName: 'changed' }), database('leaving')],
  });
});
