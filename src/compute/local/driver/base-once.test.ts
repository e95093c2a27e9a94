/** A base image is made once, however those that want it meet: two reconcilers, and a branch at a moment. */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../../../test/helpers/eventually.ts';
import { type LocalSubject, makeLocalSubject } from '../../../../test/helpers/local-subject.ts';
import { newBranchId, newEndpointId } from '../../../lib/ids.ts';
import { lsnBytes } from '../../../lib/moments.ts';
import { Bench, ownerAndDatabase } from '../../contract/bench.ts';
import { historySlot } from '../../interface/own-logins.ts';
import { baseCopies } from '../host/history/bases.ts';
import { type BaseRecord, historyPaths, readBases, readState, writeState } from '../host/history/files.ts';
import { dataDirectory } from '../host/home/layout.ts';
import { segmentBytes, segmentName } from '../host/postgres/wal-segments.ts';
import { LocalDriver } from './local-driver.ts';

const pgVersion = 18;
const policy = { retentionSeconds: 86_400 };
let subject: LocalSubject;
beforeAll(async () => {
  subject = await makeLocalSubject(pgVersion);
});
afterAll(() => subject.close());

/** A door that callers wait at until it is opened. */
function makeDoor() {
  let open = () => {};
  const isOpen = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { isOpen, open: () => open(), arrived: 0 };
}

const pathsOf = async ({ ref }: Bench, known: readonly string[] = []) => {
  const names = await readdir(subject.layout.historiesOf(ref.projectId));
  const id = names.find((name) => !known.includes(name)) ?? '';
  return historyPaths(subject.layout.history(ref.projectId, id));
};

test('of a sleeping branch, for a turn and a branch at a moment that meet', async () => {
  const door = makeDoor();
  const ofSleeping: typeof baseCopies.ofSleeping = async (...given) => {
    door.arrived += 1;
    await door.isOpen;
    return baseCopies.ofSleeping(...given);
  };
  const driver = new LocalDriver(subject.openHost({ ...baseCopies, ofSleeping }));
  const b = new Bench({ ...subject, driver });
  await b.started();
  await driver.keepHistory(b.ref, policy);
  await b.driver.suspend(b.ref, 1);
  const kept = await driver.keepHistory(b.ref, policy);
  const paths = await pathsOf(b);
  // As if the data were older than its history, which then begins with a base image.
  for (const name of await readdir(paths.bases)) await rm(join(paths.bases, name), { recursive: true });

  const turn = driver.keepHistory(b.ref, policy);
  await eventually(() => expect(door.arrived).toBe(1));
  const moment = { kind: 'lsn', lsn: kept?.until?.lsn ?? '' } as const;
  const source = { kind: 'history', branchId: b.ref.branchId, moment, adminSecret: b.adminSecret } as const;
  const branching = driver.createBranch({ ...b.ref, branchId: newBranchId(), pgVersion, source });
  await turn;
  door.open();
  await branching;
  expect(await readBases(paths)).toHaveLength(1);
  expect(door.arrived).toBe(1);
  await driver.removeProject(b.ref);
});

test('of a running branch, for a turn that learns late that another has made one', async () => {
  const host = subject.openHost();
  const door = makeDoor();
  let isHeld = false;
  const { copyLog } = host;
  const held: typeof copyLog = async (...given) => {
    if (isHeld) {
      isHeld = false;
      door.arrived += 1;
      await door.isOpen;
    }
    return copyLog(...given);
  };
  const driver = new LocalDriver(Object.assign(host, { copyLog: held }));
  const b = new Bench({ ...subject, driver });
  const { ref } = b;
  await b.started();
  await driver.keepHistory(ref, policy);
  const known = await readdir(subject.layout.historiesOf(ref.projectId));
  // A copy of a running branch is on another timeline, so a base image of its own is due at once.
  const child = { ...ref, branchId: newBranchId(), endpointId: newEndpointId() };
  await b.copyBranch(child.branchId);
  await b.start(1, child);
  await eventually(async () => expect((await host.turnHistory(child, policy))?.wantsBase).toBe(true));

  isHeld = true;
  const late = driver.keepHistory(child, policy);
  await eventually(() => expect(door.arrived).toBe(1));
  const paths = await pathsOf(b, known);
  const live = async () => (await readBases(paths)).filter(({ isLive, isLinked }) => isLive && !isLinked);
  await eventually(async () => {
    await driver.keepHistory(child, policy);
    expect(await live()).toHaveLength(1);
  });
  door.open();
  await late;
  await eventually(async () => expect((await host.turnHistory(child, policy))?.wantsBase).toBe(false));
  expect(await live()).toHaveLength(1);
  await driver.removeProject(ref);
});

describe('of a running branch, also if Catnap is killed before the base image is used', () => {
  const login = (b: Bench) => ({ username: 'catnap_admin', password: b.adminSecret, database: 'catnap' });

  /** Its history was interrupted, and the base image that ends the gap is there, but nothing says so. */
  async function makeUnused() {
    const b = new Bench(subject);
    const running = await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    await b.query(running, 'CREATE TABLE t (n int)');
    await b.driver.keepHistory(b.ref, policy);
    const paths = await pathsOf(b);
    const state = await readState(paths);
    if (state === null) throw new Error('there is no history');
    const interrupted = { ...state, copied: null, lostSince: state.copied };
    writeState(paths, interrupted, null);
    await b.query(running, 'INSERT INTO t VALUES (1)');
    await eventually(async () => {
      await b.driver.keepHistory(b.ref, policy);
      expect(await readBases(paths)).toHaveLength(2);
    });
    // Its session, which copies log once more, is over when its own slot is gone.
    const slots = () => b.query(running, 'SELECT slot_name FROM pg_replication_slots', login(b));
    await eventually(async () => expect(await slots()).toEqual([{ slot_name: historySlot }]));
    expect((await readState(paths))?.copied).not.toBeNull();
    writeState(paths, interrupted, null);
    const [, unused] = await readBases(paths);
    return { b, running, paths, unused, driver: subject.reopen() };
  }

  test('it is used after the next start, with the log since then', async () => {
    const { b, running, paths, unused, driver } = await makeUnused();
    await b.query(running, 'INSERT INTO t VALUES (2)');
    const history = await driver.keepHistory(b.ref, policy);
    expect(history?.gaps).toMatchObject([{ until: { lsn: unused?.lsn } }]);
    expect((await readBases(paths)).map(({ name }) => name)).toContain(unused?.name);
    expect(await readBases(paths)).toHaveLength(2);
    const branchId = newBranchId();
    const moment = { kind: 'lsn', lsn: history?.until?.lsn ?? '' } as const;
    const source = { kind: 'history', branchId: b.ref.branchId, moment, adminSecret: b.adminSecret } as const;
    await driver.createBranch({ ...b.ref, branchId, pgVersion, source });
    const past = await b.start(1, { branchId, endpointId: newEndpointId() });
    expect(await b.query(past, 'SELECT count(*)::int AS n FROM t')).toEqual([{ n: 2 }]);
    await driver.removeProject(b.ref);
  });

  test('it is replaced where the server has lost that log', async () => {
    const { b, running, paths, unused, driver } = await makeUnused();
    await b.query(running, `SELECT pg_drop_replication_slot('${historySlot}')`, login(b));
    const first = segmentOf(unused);
    await eventually(async () => {
      await b.query(running, "SELECT pg_switch_wal(); SELECT pg_logical_emit_message(true, '', '')", login(b));
      await b.query(running, 'CHECKPOINT', login(b));
      const data = dataDirectory(subject.layout.branch(b.ref.projectId, b.ref.branchId));
      expect(await readdir(join(data, 'pg_wal'))).not.toContain(first);
    });
    await eventually(async () => {
      await driver.keepHistory(b.ref, policy);
      const names = (await readBases(paths)).map(({ name }) => name);
      expect(names).toHaveLength(2);
      expect(names).not.toContain(unused?.name);
      expect((await readState(paths))?.copied).not.toBeNull();
    });
    await driver.removeProject(b.ref);
  });
});

const segmentOf = (base: BaseRecord | undefined) =>
  segmentName(base?.timeline ?? 0, Number(lsnBytes(base?.start ?? '0/0') / segmentBytes));
