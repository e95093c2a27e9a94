import { describe, expect, it } from 'vitest';
import type { WorkSeen } from '../db/endpoints.ts';
import { isDueForObservation, sleepsAt, whyAwake } from './idleness.ts';

const at = (seconds: number) => new Date(seconds * 1_000);
const text = (seconds: number) => at(seconds).toISOString();
const endpoint = {
  createdAt: at(0),
  startedAt: at(100),
  lastActive: at(200),
  suspendTimeoutSeconds: 0,
  workSeen: null,
  currentState: 'active' as const,
  pendingState: null,
};
const query = { kind: 'query' as const, description: 'a query of ann (pid 7)', pid: 7, role: 'ann' };
const busyAt = (seconds: number): WorkSeen => ({ observedAt: text(seconds), lastWorkAt: text(seconds), work: query });

it('sleeps five minutes after the last activity unless its owner chose otherwise', () => {
  expect(sleepsAt(endpoint)).toEqual(at(500));
  expect(sleepsAt({ ...endpoint, suspendTimeoutSeconds: 60 })).toEqual(at(260));
  expect(sleepsAt({ ...endpoint, suspendTimeoutSeconds: -1 })).toBeNull();
});

it('counts from the start when nobody has come since', () => {
  expect(sleepsAt({ ...endpoint, lastActive: null })).toEqual(at(400));
  expect(sleepsAt({ ...endpoint, lastActive: at(50) })).toEqual(at(400));
});

it('counts from the end of what it was busy with', () => {
  expect(sleepsAt({ ...endpoint, workSeen: busyAt(450) })).toEqual(at(750));
  expect(sleepsAt({ ...endpoint, workSeen: { ...busyAt(450), work: null, lastWorkAt: text(300) } })).toEqual(at(600));
  expect(sleepsAt({ ...endpoint, workSeen: { observedAt: text(450), lastWorkAt: null, work: null } })).toEqual(at(500));
});

it('is looked at when it may sleep, and again and again while it is busy', () => {
  expect(isDueForObservation(endpoint, at(499))).toBe(false);
  expect(isDueForObservation(endpoint, at(500))).toBe(true);
  const busy = { ...endpoint, workSeen: busyAt(500) };
  expect(isDueForObservation(busy, at(504))).toBe(false);
  expect(isDueForObservation(busy, at(505))).toBe(true);
  expect(isDueForObservation({ ...busy, suspendTimeoutSeconds: -1 }, at(5000))).toBe(false);
  // From before the latest start.
  expect(isDueForObservation({ ...busy, startedAt: at(501) }, at(700))).toBe(false);
});

describe('why it is awake', () => {
  it('is nothing while it sleeps, or is told to', () => {
    expect(whyAwake({ ...endpoint, currentState: 'idle' })).toBeNull();
    expect(whyAwake({ ...endpoint, pendingState: 'idle' })).toBeNull();
  });

  it('is its timeout, its setting, or what it was busy with', () => {
    expect(whyAwake(endpoint)).toMatchObject({ reason: 'recent_activity', sleepsAt: at(500) });
    expect(whyAwake({ ...endpoint, suspendTimeoutSeconds: -1 })).toMatchObject({
      reason: 'never_suspends',
      description: 'suspend_timeout_seconds is -1',
      sleepsAt: null,
    });
    expect(whyAwake({ ...endpoint, workSeen: busyAt(500) })).toMatchObject({
      reason: 'query',
      description: 'a query of ann (pid 7)',
      sleepsAt: null,
    });
    expect(whyAwake({ ...endpoint, startedAt: at(600), workSeen: busyAt(500) })?.reason).toBe('recent_activity');
  });
});
