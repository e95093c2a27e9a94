import { expect, it } from 'vitest';
import { sleepsAt } from './idleness.ts';

const at = (seconds: number) => new Date(seconds * 1_000);
const endpoint = { createdAt: at(0), startedAt: at(100), lastActive: at(200), suspendTimeoutSeconds: 0 };

it('sleeps five minutes after the last activity unless its owner chose otherwise', () => {
  expect(sleepsAt(endpoint)).toEqual(at(500));
  expect(sleepsAt({ ...endpoint, suspendTimeoutSeconds: 60 })).toEqual(at(260));
  expect(sleepsAt({ ...endpoint, suspendTimeoutSeconds: -1 })).toBeNull();
});

it('counts from the start when nobody has come since', () => {
  expect(sleepsAt({ ...endpoint, lastActive: null })).toEqual(at(400));
  expect(sleepsAt({ ...endpoint, lastActive: at(50) })).toEqual(at(400));
});
