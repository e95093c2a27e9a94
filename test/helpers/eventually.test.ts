import { expect, test } from 'vitest';
import { eventually, stays } from './eventually.ts';

test('eventually returns what the check returns, as soon as it holds', async () => {
  let tries = 0;
  const found = await eventually(() => {
    tries += 1;
    if (tries < 3) throw new Error('not yet');
    return `after ${tries}`;
  });
  expect(found).toBe('after 3');
});

test('eventually fails with the last reason when the deadline has passed', async () => {
  let tries = 0;
  const never = () => {
    tries += 1;
    throw new Error(`no ${tries}`);
  };
  const failure = await eventually(never, { deadlineMs: 30, everyMs: 10 }).catch((error: Error) => error.message);
  expect(failure).toBe(`no ${tries}`);
});

test('eventually asks less often the longer it takes', async () => {
  let tries = 0;
  const never = () => {
    tries += 1;
    throw new Error('no');
  };
  await expect(eventually(never, { deadlineMs: 400 })).rejects.toThrow('no');
  // Twenty without it; a busy machine makes fewer of both.
  expect(tries).toBeLessThan(12);
});

test('stays checks to the end of the time, and once even without any', async () => {
  const startedAt = Date.now();
  let checks = 0;
  const count = () => {
    checks += 1;
  };
  await stays(count, 0);
  expect(checks).toBe(1);
  await stays(count, 50);
  expect(checks).toBeGreaterThan(2);
  expect(Date.now() - startedAt).toBeGreaterThanOrEqual(49);
});

test('stays fails as soon as the check does not hold any more', async () => {
  const startedAt = Date.now();
  const breaks = () => expect(Date.now() - startedAt).toBeLessThan(30);
  await expect(stays(breaks, 60_000)).rejects.toThrow(/less than 30/);
});
