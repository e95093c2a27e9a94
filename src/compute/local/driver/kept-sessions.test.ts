import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ServerRefusalError } from '../../interface/refusal.ts';
import type { Session } from '../../server/admin-session.ts';
import { KeptSessions } from './kept-sessions.ts';

const server = { endpointId: 'ep-a', pid: 100 };
const ended: string[] = [];
const session = (name: string) => Object.assign(async () => [], { named: name, end: async () => ended.push(name) });
const asSession = (name: string) => session(name) as unknown as Session;
const nameOf = (sql: Session) => (sql as unknown as ReturnType<typeof session>).named;
const open = () => asSession('opened');

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  ended.length = 0;
});

test('the next work on the same server is done in the session that was kept, once', async () => {
  const sessions = new KeptSessions();
  sessions.keep(server.endpointId, server.pid, asSession('kept'));
  expect(await sessions.use(server, open, async (sql) => nameOf(sql))).toBe('kept');
  expect(ended).toEqual(['kept']);
  expect(await sessions.use(server, open, async (sql) => nameOf(sql))).toBe('opened');
});

test('another server of the endpoint gets a session of its own', async () => {
  const sessions = new KeptSessions();
  sessions.keep(server.endpointId, server.pid, asSession('kept'));
  expect(await sessions.use({ ...server, pid: 101 }, open, async (sql) => nameOf(sql))).toBe('opened');
  expect(ended).toEqual(['kept', 'opened']);
});

test('one that nobody needs is ended', () => {
  const sessions = new KeptSessions();
  sessions.keep(server.endpointId, server.pid, asSession('kept'));
  vi.advanceTimersByTime(2_000);
  expect(ended).toEqual(['kept']);
});

test('the work is done in a new session if the kept one had to log in again with the first secret', async () => {
  const sessions = new KeptSessions();
  const work = async (sql: Session) => {
    if (nameOf(sql) === 'kept') throw new ServerRefusalError('password authentication failed', '28P01');
    return nameOf(sql);
  };
  sessions.keep(server.endpointId, server.pid, asSession('kept'));
  expect(await sessions.use(server, open, work)).toBe('opened');
  expect(ended).toEqual(['kept', 'opened']);
  sessions.keep(server.endpointId, server.pid, asSession('kept'));
  await expect(sessions.use(server, open, () => Promise.reject(new Error('it failed')))).rejects.toThrow('it failed');
});
