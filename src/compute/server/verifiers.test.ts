import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import { type LocalSubject, makeLocalSubject } from '../../../test/helpers/local-subject.ts';
import { newBranchId, newEndpointId, newSecret } from '../../lib/ids.ts';
import type { ComputeAddress } from '../../lib/model.ts';
import { buildVerifier } from '../../lib/scram-verifier.ts';
import { limits, noChange, tempDiskBytes, untilRunning } from '../contract/bench.ts';
import type { ComputeRef } from '../interface/driver.ts';
import { createServerVerifiers, type ServerVerifiers, type VerifierOptions } from './verifiers.ts';

const opened: ServerVerifiers[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((verifiers) => verifiers.close()));
});
function open(options: VerifierOptions = {}): ServerVerifiers {
  const verifiers = createServerVerifiers(options);
  opened.push(verifiers);
  return verifiers;
}

describe('on a real server', () => {
  let subject: LocalSubject;
  let ref: ComputeRef;
  let address: ComputeAddress;
  const adminSecret = newSecret();
  const stored = buildVerifier('pw');

  async function start(generation: number): Promise<void> {
    const sizes = { tempDiskBytes, limits };
    await subject.driver.start({ ...ref, generation, pgVersion: 17, settings: {}, ...sizes, adminSecret });
    const running = await untilRunning(subject.driver, ref);
    if (running.address === null) throw new Error('the server has no address');
    address = running.address;
  }
  const ask = (text: string, login = { username: 'catnap_admin', password: adminSecret, database: 'catnap' }) =>
    subject.query(address, login, text);
  const asOwner = (text: string) => ask(text, { username: 'owner', password: 'pw', database: 'app' });
  /** Sessions of Catnap's own login, except the one that asks. */
  const sessions = async () =>
    ask("SELECT pid FROM pg_stat_activity WHERE usename = 'catnap_admin' AND pid <> pg_backend_pid() ORDER BY pid");
  /** The same server under another name, which counts as another session. */
  const alias = (times: number): ComputeAddress => {
    if (address.kind !== 'unix') throw new Error('a local server has a unix socket');
    return { kind: 'unix', path: `${'/'.repeat(times)}${address.path}` };
  };

  beforeAll(async () => {
    subject = await makeLocalSubject(17);
    ref = { ...subject.newTenant(), branchId: newBranchId(), endpointId: newEndpointId() };
    await subject.driver.createBranch({ ...ref, pgVersion: 17, source: { kind: 'template' } });
    await start(1);
    await subject.driver.configure(ref, {
      ...noChange,
      roles: [{ name: 'owner', verifier: stored }],
      databases: [{ name: 'app', renameFrom: null, ownerName: 'owner' }],
    });
    await eventually(async () => expect(await sessions()).toEqual([]));
  });
  afterAll(async () => {
    await subject.driver.removeProject(ref);
    await subject.close();
  });

  test('a verifier is read, over one session for all logins, and as it is now', async () => {
    const verifiers = open();
    expect(await Promise.all([1, 2, 3].map(() => verifiers.read(address, adminSecret, 'owner')))).toEqual([
      stored,
      stored,
      stored,
    ]);
    const before = await sessions();
    expect(before).toHaveLength(1);
    await ask("ALTER ROLE owner PASSWORD 'changed'");
    const changed = await verifiers.read(address, adminSecret, 'owner');
    expect(changed).toMatch(/^SCRAM-SHA-256\$/);
    expect(changed).not.toBe(stored);
    await ask(`ALTER ROLE owner PASSWORD '${stored}'`);
    expect(await verifiers.read(address, adminSecret, 'owner')).toBe(stored);
    expect(await sessions()).toEqual(before);
  });

  test('it is null for a role that cannot log in', async () => {
    await asOwner("CREATE ROLE closed PASSWORD 'x'; CREATE ROLE bare LOGIN");
    const verifiers = open();
    for (const role of ['closed', 'bare', 'not_there', '', 'catnap_admin', 'pg_monitor']) {
      expect(await verifiers.read(address, adminSecret, role), role).toBeNull();
    }
  });

  test('it is undefined when the server refuses the password of Catnap’s own login', async () => {
    expect(await open().read(address, newSecret(), 'owner')).toBeUndefined();
  });

  test('at most so many sessions are kept, and the one that was used longest ago is closed', async () => {
    const verifiers = open({ sessionsMax: 2 });
    const read = (times: number) => verifiers.read(alias(times), adminSecret, 'owner');
    await read(1);
    const [first] = await sessions();
    await read(2);
    const second = (await sessions()).find(({ pid }) => pid !== first?.pid);
    await read(1);
    await read(3);
    await eventually(async () => {
      const left = (await sessions()).map(({ pid }) => pid);
      expect(left).toHaveLength(2);
      expect(left).toContain(first?.pid);
      expect(left).not.toContain(second?.pid);
    });
    expect(await read(2)).toBe(stored);
  });

  test('a session that a restart of the server has ended is replaced', async () => {
    const verifiers = open();
    expect(await verifiers.read(address, adminSecret, 'owner')).toBe(stored);
    const before = address;
    await subject.driver.suspend(ref, 1);
    expect(await verifiers.read(before, adminSecret, 'owner')).toBeUndefined();
    await start(2);
    expect(address).toEqual(before);
    await eventually(async () => expect(await verifiers.read(address, adminSecret, 'owner')).toBe(stored));
  });

  test('a session that is ended while it is asked is replaced', async () => {
    const verifiers = open();
    const endSessions = () =>
      ask(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE usename = 'catnap_admin' AND pid <> pg_backend_pid()`);
    for (let turn = 0; turn < 20; turn += 1) {
      expect(await verifiers.read(address, adminSecret, 'owner')).toBe(stored);
      await endSessions();
      expect(await verifiers.read(address, adminSecret, 'owner')).toBe(stored);
    }
  });

  test('no session is left when they are closed', async () => {
    const verifiers = open();
    await verifiers.read(address, adminSecret, 'owner');
    await verifiers.close();
    await eventually(async () => expect(await sessions()).toEqual([]));
  });
});

describe('a server that does not answer', () => {
  const answerMs = 600;
  const path = join(tmpdir(), `cn-silent-${process.pid}`);
  const sockets = new Set<Socket>();
  let silent: Server;
  beforeAll(async () => {
    silent = createServer((socket) => sockets.add(socket));
    await new Promise<void>((resolve) => silent.listen(path, resolve));
  });
  afterAll(() => {
    for (const socket of sockets) socket.destroy();
    silent.close();
  });

  const timed = async (work: () => Promise<unknown>) => {
    const startedAt = performance.now();
    await work();
    return performance.now() - startedAt;
  };

  test('is waited for no longer than a login can bear', async () => {
    const verifiers = open({ answerMs });
    let answer: string | null | undefined = null;
    const ms = await timed(async () => {
      answer = await verifiers.read({ kind: 'unix', path }, 'secret', 'owner');
    });
    expect(answer).toBeUndefined();
    expect(ms).toBeGreaterThan(answerMs - 10);
    expect(await verifiers.read({ kind: 'unix', path: `${path}-gone` }, 'secret', 'owner')).toBeUndefined();
  });

  test('an endpoint that does not exist takes the time of a read or none, always the same for its id', async () => {
    const verifiers = open({ answerMs });
    const ids = Array.from({ length: 24 }, (_, at) => `ep-${at}`);
    const isSlow = async () =>
      Promise.all(ids.map(async (id) => (await timed(() => verifiers.pretend(id))) > answerMs / 2));
    // Nothing was read yet: there is no time to imitate.
    expect(await isSlow()).not.toContain(true);
    await verifiers.read({ kind: 'unix', path }, 'secret', 'owner');
    const slow = await isSlow();
    expect(slow).toContain(true);
    expect(slow).toContain(false);
    expect(await isSlow()).toEqual(slow);
  });
});
