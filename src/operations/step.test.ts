import { expect, test } from 'vitest';
import { notSupported } from '../compute/interface/abilities.ts';
import { abandonIfHopeless, isFinal } from './step.ts';

test('what a driver cannot do is not tried again, except where giving up would leave something behind', async () => {
  const refusal = notSupported('computes here have no read replicas');
  expect(isFinal('start_compute', refusal)).toBe(true);
  expect(isFinal('delete_timeline', refusal)).toBe(false);
  expect(isFinal('start_compute', new Error('the server is away'))).toBe(false);
  const copy = abandonIfHopeless(() => Promise.reject(refusal));
  expect(await copy).toEqual({ kind: 'abandon', reason: refusal.message });
  const passing = new Error('the server is away');
  await expect(abandonIfHopeless(() => Promise.reject(passing))).rejects.toBe(passing);
});
