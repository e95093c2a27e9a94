import { afterEach, beforeEach, expect, test } from 'vitest';
import type { WatchEvent } from '../../src/compute/kubernetes/client/watch.ts';
import { type Secret, secrets } from '../../src/compute/kubernetes/objects/kinds.ts';
import { eventually } from '../helpers/eventually.ts';
import { type OpenDouble, openDouble } from '../helpers/kubernetes-double/open-double.ts';

let open: OpenDouble;
let stop: AbortController;
beforeEach(async () => {
  open = await openDouble();
  stop = new AbortController();
});
afterEach(async () => {
  stop.abort();
  await open.close();
});

const make = (name: string, of = 'us') => {
  const metadata = { name, labels: { of } };
  open.double.store.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque' } as Secret);
};
const touch = (name: string) =>
  open.double.store.update('secrets', name, (it) => ({
    ...it,
    metadata: { ...it.metadata, annotations: { touched: it.metadata.resourceVersion } },
  }));
const drop = (name: string) => open.double.store.remove('secrets', name, { foreground: false, uid: undefined });
const lists = () => open.double.requests.filter(({ path }) => !path.includes('watch=1')).length;
const watches = () => open.double.requests.length - lists();

/** Follows in the background; what it has seen is in words, `end` says how it ended. */
function follow() {
  const seen: string[] = [];
  const note = (event: WatchEvent<Secret>) => {
    if (event.type === 'listed') return `listed ${event.objects.map(({ metadata }) => metadata.name)}`;
    return `${event.type} ${event.object.metadata.name}`;
  };
  const run = async () => {
    for await (const event of open.client().watch(secrets, { of: 'us' }, stop.signal)) seen.push(note(event));
  };
  const end = run().then(
    () => null,
    (error: unknown) => error,
  );
  return { seen, end };
}
const untilWatching = () => eventually(() => expect(open.double.watchCount).toBe(1));

test('shows what is there and what becomes of it, and nothing of others', async () => {
  make('a');
  make('x', 'them');
  const { seen, end } = follow();
  await untilWatching();
  make('b');
  touch('a');
  touch('x');
  drop('b');
  await eventually(() => expect(seen).toEqual(['listed a', 'changed b', 'changed a', 'removed b']));
  stop.abort();
  expect(await end).toBeNull();
  await eventually(() => expect(open.double.watchCount).toBe(0));
});

test.each(['politely', 'broken'] as const)('goes on where it was when a connection ends (%s)', async (how) => {
  make('a');
  const { seen } = follow();
  await untilWatching();
  touch('a');
  await eventually(() => expect(seen).toHaveLength(2));
  // In one turn: nobody listens when this happens.
  open.double.endWatches(how);
  make('b');
  drop('a');
  await eventually(() => expect(seen).toEqual(['listed a', 'changed a', 'changed b', 'removed a']));
  await untilWatching();
  touch('b');
  await eventually(() => expect(seen.slice(4)).toEqual(['changed b']));
  expect(lists()).toBe(1);
});

test('lists again when its version is forgotten, and sees what has gone meanwhile', async () => {
  make('a');
  make('b');
  const { seen } = follow();
  await untilWatching();
  open.double.endWatches('broken');
  drop('a');
  make('c');
  open.double.store.compact();
  await eventually(() => expect(seen).toEqual(['listed a,b', 'listed b,c']));
  await untilWatching();
  touch('c');
  await eventually(() => expect(seen.slice(2)).toEqual(['changed c']));
  expect(lists()).toBe(2);
});

test('a bookmark keeps a quiet watch young', async () => {
  make('a');
  const { seen } = follow();
  await untilWatching();
  for (let n = 0; n < 5; n++) make(`x-${n}`, 'them');
  open.double.store.compact();
  open.double.sendBookmarks();
  // Behind the bookmark in the same stream.
  touch('a');
  await eventually(() => expect(seen).toEqual(['listed a', 'changed a']));
  open.double.store.compact();
  open.double.sendBookmarks();
  make('b');
  await eventually(() => expect(seen).toEqual(['listed a', 'changed a', 'changed b']));
  open.double.endWatches('politely');
  await eventually(() => expect(watches()).toBe(2));
  make('c');
  await eventually(() => expect(seen.at(-1)).toBe('changed c'));
  expect(lists()).toBe(1);
});

test('waits for a server that is away', async () => {
  make('a');
  let failures = 0;
  open.double.interfere = () => (failures++ < 4 ? 'hang up' : undefined);
  const { seen } = follow();
  await eventually(() => expect(seen).toEqual(['listed a']));
  await untilWatching();
  failures = 0;
  open.double.endWatches('broken');
  make('b');
  await eventually(() => expect(seen).toEqual(['listed a', 'changed b']));
});

test('ends with the reason where it may not look', async () => {
  const body = { message: 'secrets is forbidden', reason: 'Forbidden', code: 403 };
  open.double.interfere = () => ({ code: 403, body });
  expect(await follow().end).toMatchObject({ verdict: 'refused', message: expect.stringMatching(/forbidden/) });
});

test('a name with a line separator of Unicode arrives as it is', async () => {
  const { seen } = follow();
  await untilWatching();
  make('a\u2028b');
  await eventually(() => expect(seen).toEqual(['listed ', 'changed a\u2028b']));
});
