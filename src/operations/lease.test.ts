import { describe, expect, test } from 'vitest';
import type { ComputeDriver } from '../compute/interface/driver.ts';
import { Lease, LeaseLostError, whileHeld } from './lease.ts';

function makeWatches() {
  const shown = { clockMs: 1_000_000, passedMs: 50 };
  return { shown, watches: { clockMs: () => shown.clockMs, passedMs: () => shown.passedMs } };
}

describe('a lease', () => {
  test.each(['clockMs', 'passedMs'] as const)('is lost when %s has gone on for as long as it lasts', async (watch) => {
    const { shown, watches } = makeWatches();
    const lease = new Lease(watches, 100);
    expect(lease.isHeld).toBe(false);
    await lease.confirm(async () => true, Boolean);
    shown[watch] += 99;
    expect(lease.isHeld).toBe(true);
    shown[watch] += 1;
    expect(lease.isHeld).toBe(false);
  });

  test('counts from before the database was asked, and is not extended by a refusal', async () => {
    const { shown, watches } = makeWatches();
    const lease = new Lease(watches, 100);
    const answers = [true, true, false];
    const ask = async () => {
      shown.passedMs += 60;
      return answers.shift() ?? false;
    };
    await lease.confirm(ask, Boolean);
    await lease.confirm(ask, Boolean);
    expect(lease.isHeld).toBe(true);
    await lease.confirm(ask, Boolean);
    expect(lease.isHeld).toBe(false);
  });

  test('that is lost lets no call of the driver through', async () => {
    const { shown, watches } = makeWatches();
    const lease = new Lease(watches, 100);
    await lease.confirm(async () => true, Boolean);
    const removed: unknown[] = [];
    const bare = { removeBranch: async (ref: unknown) => void removed.push(ref) } as Partial<ComputeDriver>;
    const driver = whileHeld(bare as ComputeDriver, lease);
    const ref = { projectId: 'p', tenantUid: null, branchId: 'b' } as never;
    await driver.removeBranch(ref);
    shown.passedMs += 100;
    await expect(driver.removeBranch(ref)).rejects.toThrow(LeaseLostError);
    expect(removed).toEqual([ref]);
  });
});
