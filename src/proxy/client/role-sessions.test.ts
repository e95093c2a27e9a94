import { expect, test, vi } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import { scriptControlPlane, silentLog } from '../../../test/helpers/proxy.ts';
import { RoleSessions } from './role-sessions.ts';

function make() {
  const resets = new Map<string, ReadonlyMap<string, number>>();
  let tell: (endpointId: string | null) => void = () => undefined;
  const findResets = vi.fn(async (endpointId: string) => resets.get(endpointId) ?? new Map());
  const onReset = (listener: typeof tell) => {
    tell = listener;
  };
  const sessions = new RoleSessions(scriptControlPlane({ findResets, onReset }), silentLog);
  const enter = (endpointId: string, role: string, resetAt: number | null = null) => {
    const end = vi.fn();
    return { end, leave: sessions.enter(endpointId, { role, resetAt, end }) };
  };
  return { resets, enter, findResets, tell: (endpointId: string | null) => tell(endpointId) };
}

test('a reset ends the sessions of its role that are older, and no others', async () => {
  const { resets, enter, tell } = make();
  const older = enter('ep-a', 'ann');
  const newer = enter('ep-a', 'ann', 7);
  const others = [enter('ep-a', 'ben'), enter('ep-b', 'ann')];
  resets.set('ep-a', new Map([['ann', 7]]));
  tell('ep-a');
  await eventually(() => expect(older.end).toHaveBeenCalledOnce());
  for (const { end } of [newer, ...others]) expect(end).not.toHaveBeenCalled();
});

test('a login that was under way during the reset ends as soon as its session begins', async () => {
  const { resets, enter, tell, findResets } = make();
  resets.set('ep-a', new Map([['ann', 7]]));
  tell('ep-a');
  await eventually(() => expect(findResets).toHaveReturned());
  const late = await eventually(() => {
    const session = enter('ep-a', 'ann', 3);
    expect(session.end).toHaveBeenCalledOnce();
    return session;
  });
  expect(late.end).toHaveBeenCalledOnce();
  expect(enter('ep-a', 'ann', 7).end).not.toHaveBeenCalled();
});

test('after lost news every endpoint with sessions is asked, and one whose sessions are over is not', async () => {
  const { resets, enter, tell, findResets } = make();
  const [a, b] = [enter('ep-a', 'ann'), enter('ep-b', 'ann')];
  b.leave();
  resets.set('ep-a', new Map([['ann', 7]]));
  tell(null);
  await eventually(() => expect(a.end).toHaveBeenCalledOnce());
  expect(findResets.mock.calls).toEqual([['ep-a']]);
});
