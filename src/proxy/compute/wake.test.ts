import { describe, expect, it } from 'vitest';
import { scriptControlPlane, silentLog } from '../../../test/helpers/proxy.ts';
import { CatnapError } from '../../lib/errors.ts';
import { startActivity } from '../kit/activity.ts';
import type { DialAddress } from '../kit/control-plane.ts';
import { createWaker } from './wake.ts';

const address: DialAddress = { kind: 'unix', path: '/nowhere' };
const stay = new AbortController().signal;

describe('wake', () => {
  it('is asked for once per endpoint while clients wait, and again afterwards', async () => {
    const asked: string[] = [];
    const answers: (() => void)[] = [];
    const wake = (endpointId: string) =>
      new Promise<DialAddress>((resolve) => {
        asked.push(endpointId);
        answers.push(() => resolve(address));
      });
    const waker = createWaker(scriptControlPlane({ wake }), 10_000);
    const waiting = ['a', 'a', 'b', 'a'].map((id) => waker.wake(id, stay));
    expect(asked).toEqual(['a', 'b']);
    for (const answer of answers) answer();
    expect(await Promise.all(waiting)).toEqual([address, address, address, address]);
    const again = waker.wake('a', stay);
    expect(asked).toEqual(['a', 'b', 'a']);
    answers[2]?.();
    await again;
  });

  it('fails for all with the message of the control plane, and is not remembered', async () => {
    let calls = 0;
    const wake = async () => {
      calls += 1;
      throw new CatnapError('unavailable', 'no room');
    };
    const waker = createWaker(scriptControlPlane({ wake }), 10_000);
    const results = await Promise.allSettled([waker.wake('a', stay), waker.wake('a', stay)]);
    expect(results.map((result) => result.status === 'rejected' && result.reason.message)).toEqual([
      'no room',
      'no room',
    ]);
    await expect(waker.wake('a', stay)).rejects.toThrow('no room');
    expect(calls).toBe(2);
  });

  it('hides an unexpected failure behind a plain sentence', async () => {
    const wake = async () => {
      throw new Error('connection to 10.0.0.1 refused');
    };
    const failure = createWaker(scriptControlPlane({ wake }), 10_000).wake('a', stay);
    await expect(failure).rejects.toMatchObject({ kind: 'internal', message: 'Control plane request failed' });
  });

  it('says that it is worth another try while the system database goes away', async () => {
    const wake = async () => {
      throw Object.assign(new Error('write CONNECTION_CLOSED'), { code: 'CONNECTION_CLOSED' });
    };
    const failure = createWaker(scriptControlPlane({ wake }), 10_000).wake('a', stay);
    await expect(failure).rejects.toMatchObject({ kind: 'unavailable', message: 'Control plane request failed' });
  });

  it('that takes too long fails with 57P03, and does not hold up clients that come later', async () => {
    let calls = 0;
    const wake = () => {
      calls += 1;
      return calls === 1 ? new Promise<DialAddress>(() => {}) : Promise.resolve(address);
    };
    const waker = createWaker(scriptControlPlane({ wake }), 20);
    const failure = await waker.wake('a', stay).catch((thrown: unknown) => thrown);
    expect(failure).toBeInstanceOf(CatnapError);
    expect(failure instanceof CatnapError && failure.facts.sqlState).toBe('57P03');
    await expect.poll(() => waker.wake('a', stay).catch(() => null)).toEqual(address);
  });

  it('goes on for the others when one client leaves', async () => {
    let answer = () => {};
    const wake = () =>
      new Promise<DialAddress>((resolve) => {
        answer = () => resolve(address);
      });
    const waker = createWaker(scriptControlPlane({ wake }), 10_000);
    const leaver = new AbortController();
    const left = waker.wake('a', leaver.signal);
    const stayed = waker.wake('a', stay);
    leaver.abort(new Error('gone'));
    await expect(left).rejects.toThrow('gone');
    answer();
    expect(await stayed).toEqual(address);
    await expect(waker.wake('a', leaver.signal)).rejects.toThrow('gone');
  });
});

describe('activity', () => {
  it('is reported at once, then in batches, again after a failure, and finally at close', async () => {
    const reports: [string, number][][] = [];
    let failing = true;
    let nowMs = 1;
    const reportActivity = async (seen: ReadonlyMap<string, Date>) => {
      reports.push([...seen].map(([id, at]) => [id, at.getTime()]));
      if (failing) throw new Error('the database is away');
    };
    const activity = startActivity({
      controlPlane: scriptControlPlane({ reportActivity }),
      clock: { now: () => new Date(nowMs) },
      log: silentLog,
      intervalMs: 5,
    });
    activity.note('a');
    activity.note('b');
    expect(reports).toEqual([[['a', 1]]]);
    await expect.poll(() => reports.length).toBeGreaterThan(1);
    expect(new Map(reports[1])).toEqual(
      new Map([
        ['a', 1],
        ['b', 1],
      ]),
    );
    nowMs = 2;
    activity.note('a');
    failing = false;
    await activity.close();
    const last = new Map(reports.flat());
    expect([last.get('a'), last.get('b')]).toEqual([2, 1]);
    const count = reports.length;
    await activity.close();
    expect(reports.length).toBe(count);
  });
});
