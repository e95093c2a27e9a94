import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { type Idempotency, runCommand } from './command.ts';

let test: TestCore;
beforeAll(async () => {
  test = await makeCore();
});
afterAll(() => test.close());

const request = (key: string, body = '{}', scope = 'key 1 POST /x'): Idempotency => ({ scope, key, body });

describe('a command with an idempotency key', () => {
  it('runs once, and repeats get the same reply', async () => {
    let runs = 0;
    const run = () => runCommand(test.core, request('once'), async () => ({ run: ++runs }));
    expect(await run()).toEqual({ run: 1 });
    expect(await run()).toEqual({ run: 1 });
    expect(runs).toBe(1);
  });

  it('makes concurrent duplicates wait for the first', async () => {
    let runs = 0;
    const replies = await Promise.all(
      Array.from({ length: 6 }, () => runCommand(test.core, request('same'), async () => ({ run: ++runs }))),
    );
    expect(runs).toBe(1);
    expect(replies.every((reply) => reply.run === 1)).toBe(true);
  });

  it('refuses another body under the same key', async () => {
    await runCommand(test.core, request('body', '{"a":1}'), async () => ({ ok: true }));
    const other = runCommand(test.core, request('body', '{"a":2}'), async () => ({ ok: false }));
    await expect(other).rejects.toMatchObject({ kind: 'unprocessable' });
  });

  it('keeps callers and routes apart', async () => {
    const mine = await runCommand(test.core, request('shared'), async () => ({ who: 'me' }));
    const theirs = await runCommand(test.core, request('shared', '{}', 'key 2 POST /x'), async () => ({ who: 'them' }));
    expect([mine.who, theirs.who]).toEqual(['me', 'them']);
  });

  it('remembers nothing of a command that failed', async () => {
    const failing = runCommand(test.core, request('retry'), async () => Promise.reject(new Error('no')));
    await expect(failing).rejects.toThrow('no');
    expect(await runCommand(test.core, request('retry'), async () => ({ ok: true }))).toEqual({ ok: true });
  });

  it('stores the reply sealed', async () => {
    await runCommand(test.core, request('sealed'), async () => ({ password: 'hunter2' }));
    const [row] = await test.core.database.sql`select reply from idempotency_keys where key = 'sealed'`;
    expect(Buffer.from(row?.reply).includes('hunter2')).toBe(false);
  });

  it('bounds the length of the key', async () => {
    await expect(runCommand(test.core, request('x'.repeat(256)), async () => ({}))).rejects.toThrow(/1 to 255/);
  });
});
