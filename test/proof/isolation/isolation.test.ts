/** The short form of `npm run isolation`: the same attempts, fewer of them. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Random } from '../random.ts';
import { sweepEvents } from './events.ts';
import { sweepProvider } from './provider.ts';
import { routesThatShow, sweepRoutes } from './routes.ts';
import { sweepScopes } from './scopes.ts';
import { makeStage, type Stage } from './stage.ts';
import { sweepWire } from './wire.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await makeStage();
});
afterAll(() => stage.close());

test('what the sweep looks for is shown to its owner', async () => {
  expect(await routesThatShow(stage)).toBeGreaterThan(15);
});

test('nobody sees or changes what belongs to somebody else', async () => {
  const random = new Random(17);
  const { attempts, leaks, changes } = await sweepRoutes(stage, {
    // Those without a key are refused before a route looks at anything.
    choose: (all, { standing }) => all.filter(() => random.chance(standing === 'nobody' ? 0.01 : 0.08)),
  });
  expect([...leaks, ...changes]).toEqual([]);
  expect(attempts).toBeGreaterThan(250);
});

test('a key of limited scope changes nothing that is not its own branch, and sees no secret', async () => {
  const random = new Random(17);
  const { attempts, leaks, changes } = await sweepScopes(stage, {
    choose: (all) => all.filter(() => random.chance(0.3)),
  });
  expect([...leaks, ...changes]).toEqual([]);
  expect(attempts).toBeGreaterThan(100);
});

test('nobody hears of operations that are not theirs', async () => {
  const { attempts, leaks, changes } = await sweepEvents(stage);
  expect([...leaks, ...changes]).toEqual([]);
  expect(attempts).toBeGreaterThan(100);
});

test('nobody gets further at the auth provider than to what is theirs', async () => {
  const random = new Random(17);
  const { attempts, leaks, changes } = await sweepProvider({
    choose: (all, { standing }) => all.filter(() => random.chance(standing === 'nobody' ? 0.01 : 0.06)),
  });
  expect([...leaks, ...changes]).toEqual([]);
  expect(attempts).toBeGreaterThan(250);
});

test('nobody reads rows of somebody else over HTTP or a WebSocket', async () => {
  const random = new Random(17);
  const { attempts, leaks } = await sweepWire({ choose: (all) => all.filter(() => random.chance(0.04)) });
  expect(leaks).toEqual([]);
  expect(attempts).toBeGreaterThan(40);
});
