/** History on real servers, as far as the contract does not go: base images, lost log, retention, who may read it. */
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../../../test/helpers/eventually.ts';
import { type LocalSubject, makeLocalSubject } from '../../../../test/helpers/local-subject.ts';
import { type LoopDisk, makeLoopDisk, whyNoLoopDisk } from '../../../../test/helpers/loop-disk.ts';
import { newBranchId, newEndpointId } from '../../../lib/ids.ts';
import type { BranchHistory } from '../../../lib/model.ts';
import { type LogPosition, lsnBytes, type Moment } from '../../../lib/moments.ts';
import { Bench, ownerAndDatabase } from '../../contract/bench.ts';
import { type ComputeObservation, NoSuchMomentError } from '../../interface/driver.ts';
import { historySlot } from '../../interface/own-logins.ts';
import { baseCopies } from '../host/history/bases.ts';
import { type HistoryPaths, historyPaths, readBases, readState } from '../host/history/files.ts';
import { removeLostHistories } from '../host/history/leftovers.ts';
import { LocalDriver } from './local-driver.ts';

const daySeconds = 86_400;
const isWhole = process.env.CATNAP_TEST_FILESYSTEMS === 'all';
const noXfs = await whyNoLoopDisk('xfs');

for (const where of ['on the filesystem that is there', 'on XFS'] as const) {
  describe.skipIf(where === 'on XFS' && noXfs !== null)(`history ${where}`, () => describeHistory(where === 'on XFS'));
}

function describeHistory(onXfs: boolean): void {
  const pgVersion = 18;
  let disk: LoopDisk | undefined;
  let subject: LocalSubject;
  beforeAll(async () => {
    disk = onXfs ? await makeLoopDisk('xfs', 4 * 1024 ** 3) : undefined;
    subject = await makeLocalSubject(pgVersion, disk?.path);
  });
  afterAll(async () => {
    await subject.close();
    await disk?.remove();
  });

  async function withTable(): Promise<{ b: Bench; running: ComputeObservation; paths: HistoryPaths }> {
    const b = new Bench(subject);
    const running = await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    await b.query(running, 'CREATE TABLE t (n int)');
    await keep(b);
    const [id = ''] = await readdir(subject.layout.historiesOf(b.ref.projectId));
    return { b, running, paths: historyPaths(subject.layout.history(b.ref.projectId, id)) };
  }
  async function keep(b: Bench, retentionSeconds = daySeconds): Promise<BranchHistory> {
    const history = await b.driver.keepHistory(b.ref, { retentionSeconds });
    if (history === null) throw new Error('the branch has no data');
    return history;
  }
  /** A base image is made behind the caller's back if it takes long. */
  const keepUntil = (b: Bench, expected: Partial<BranchHistory>, retentionSeconds = daySeconds) =>
    eventually(async () => {
      const history = await keep(b, retentionSeconds);
      expect(history).toMatchObject(expected);
      return history;
    });
  async function now(b: Bench, on: ComputeObservation): Promise<LogPosition> {
    const [row] = (await b.query(on, 'SELECT clock_timestamp() AS at, pg_current_wal_lsn() AS lsn')) ?? [];
    if (!(row?.at instanceof Date)) throw new Error('the server did not tell the time');
    return { at: row.at.toISOString(), lsn: String(row.lsn) };
  }
  /** Runs SQL on a new branch that holds the state of that moment. */
  async function at(b: Bench, moment: Moment, text: string): Promise<Record<string, unknown>[] | null> {
    const branchId = newBranchId();
    const source = { kind: 'history', branchId: b.ref.branchId, moment, adminSecret: b.adminSecret } as const;
    await b.driver.createBranch({ ...b.ref, branchId, pgVersion, source });
    const running = await b.start(1, { branchId, endpointId: newEndpointId() });
    return b.query(running, text);
  }
  const count = 'SELECT count(*)::int AS n FROM t';
  /** Repeated values would be compressed. */
  const fill = (megabytes: number) => `INSERT INTO t SELECT n FROM generate_series(1, ${megabytes * 15_000}) n`;

  test('a snapshot is one base image without log, made once, and goes with the snapshot', async () => {
    const { b } = await withTable();
    const { layout } = subject;
    const branchId = newBranchId();
    const ref = { ...b.ref, branchId };
    await b.driver.createBranch({ ...ref, pgVersion, source: { kind: 'branch', branchId: b.ref.branchId } });
    const policy = { retentionSeconds: daySeconds, isSnapshot: true };
    const before = await readdir(layout.historiesOf(ref.projectId));
    const made = await b.driver.keepHistory(ref, policy);
    expect(made).toMatchObject({ baseCount: 1, logBytes: 0, gaps: [] });
    const [id = ''] = (await readdir(layout.historiesOf(ref.projectId))).filter((one) => !before.includes(one));
    const paths = historyPaths(layout.history(ref.projectId, id));
    const [base] = await readBases(paths);
    expect(base?.lsn).toBe(base?.start);
    expect(await readdir(paths.log)).toEqual([]);
    // It was copied while its server ran: recovery must begin where the label says, with the log that is beside it.
    const files = await readdir(join(paths.bases, base?.name ?? '', 'pgdata'), { recursive: true });
    expect(files).toEqual(expect.arrayContaining(['backup_label', expect.stringMatching(/^pg_wal\/[0-9A-F]{24}$/)]));
    expect(await readState(paths)).toMatchObject({ branchId, copied: { at: base?.at, lsn: base?.lsn } });
    expect(await b.driver.keepHistory(ref, policy)).toEqual(made);
    expect(await readBases(paths)).toEqual([base]);
    await b.driver.removeBranch(ref);
    expect(await readdir(layout.historiesOf(ref.projectId))).toEqual(before);
    expect(await b.driver.keepHistory(ref, policy)).toBeNull();
    await b.driver.removeProject(b.ref);
  });

  test('a commit between the reading of the log’s end and its copying is copied though nothing follows it', async () => {
    const host = subject.openHost();
    const driver = new LocalDriver(host);
    const b = new Bench({ ...subject, driver });
    const running = await b.started();
    await driver.configure(b.ref, ownerAndDatabase);
    await b.query(running, 'CREATE TABLE t (n int)');
    await keepUntil(b, { baseCount: 1 });
    const early = await now(b, running);
    await b.query(running, 'INSERT INTO t VALUES (1)');
    const committed = await now(b, running);
    await host.copyLog(b.ref, { timeline: 1, ...early });
    const { until } = await keep(b);
    expect(lsnBytes(until?.lsn ?? '0/0')).toBeGreaterThanOrEqual(lsnBytes(committed.lsn));
    await driver.removeProject(b.ref);
  });

  test('a base image of a running server shortens replay, and one of a sleeping server too', async () => {
    const { b, running, paths } = await withTable();
    const first = await now(b, running);
    // As if all of the log had been lost, so that a base image is due at once.
    const state = JSON.parse(await readFile(join(paths.directory, 'history.json'), 'utf8'));
    await writeFile(
      join(paths.directory, 'history.json'),
      JSON.stringify({ ...state, copied: null, lostSince: state.copied }),
    );
    await b.query(running, 'INSERT INTO t VALUES (1)');
    await keepUntil(b, { baseCount: 2, gaps: [{ from: state.copied, until: expect.anything() }] });
    const [, live] = await readBases(paths);
    expect(live).toMatchObject({ isLive: true });
    expect(live?.bytesShared).toBe(onXfs ? live?.bytes : 0);
    await b.query(running, 'INSERT INTO t VALUES (2)');
    const second = await now(b, running);
    await b.query(running, 'INSERT INTO t VALUES (3)');
    await expect(at(b, { kind: 'time', at: first.at }, count)).rejects.toThrow(NoSuchMomentError);
    expect(await at(b, { kind: 'time', at: second.at }, count)).toEqual([{ n: 2 }]);
    expect(await at(b, { kind: 'lsn', lsn: second.lsn }, count)).toEqual([{ n: 2 }]);

    await b.query(running, fill(onXfs ? 20 : 80));
    await b.driver.suspend(b.ref, 1);
    await keepUntil(b, { baseCount: 3 });
    const again = await b.start(2);
    const third = await now(b, again);
    await b.query(again, 'DROP TABLE t');
    expect(await at(b, { kind: 'time', at: third.at }, count)).toEqual([{ n: (onXfs ? 20 : 80) * 15_000 + 3 }]);
    await b.driver.removeProject(b.ref);
    expect(await subject.leftovers()).toEqual([]);
  });

  test('old moments are given up, with their log, as soon as a newer base image allows', async () => {
    const { b, running, paths } = await withTable();
    await b.query(running, fill(onXfs ? 20 : 80));
    await b.driver.suspend(b.ref, 1);
    const full = await keepUntil(b, { baseCount: 2 });
    const segments = (await readdir(paths.log)).length;
    // A second of the past is kept: the sleep was longer ago than that once the base image counts as old.
    const left = await keepUntil(b, { baseCount: 1 }, 1);
    expect((await readdir(paths.log)).length).toBeLessThan(segments);
    expect(left.logBytes).toBeLessThan(full.logBytes);
    const early = { kind: 'time', at: full.from?.at ?? '' } as const;
    await expect(at(b, early, count)).rejects.toThrow(NoSuchMomentError);
    await b.driver.removeProject(b.ref);
  });

  test('log goes on being copied while a base image is', async () => {
    const { b: source, running: sourceServer } = await withTable();
    let [isSlow, copying] = [true, 0];
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const slowly = <A extends unknown[], R>(copy: (...given: A) => Promise<R>) => {
      return async (...given: A): Promise<R> => {
        copying += 1;
        const made = await copy(...given);
        if (isSlow) await released;
        return made;
      };
    };
    const copies = { ...baseCopies, ofRunning: slowly(baseCopies.ofRunning) };
    const driver = new LocalDriver(subject.openHost(copies));
    // A copy of a running branch is on another timeline, so a base image of its own is due at once.
    const ref = { ...source.ref, branchId: newBranchId(), endpointId: newEndpointId() };
    await source.copyBranch(ref.branchId);
    expect(await source.query(sourceServer, count)).toEqual([{ n: 0 }]);
    const b = new Bench({ ...subject, driver });
    Object.assign(b, { ref, adminSecret: source.adminSecret });
    const running = await b.start(1);
    const first = await eventually(async () => {
      const history = await keep(b);
      expect(copying).toBe(1);
      return history;
    });
    for (const n of [1, 2]) {
      await b.query(running, `INSERT INTO t VALUES (${n})`);
      const { lsn } = await now(b, running);
      const { until, baseCount } = await keep(b);
      expect(lsnBytes(until?.lsn ?? '0/0')).toBeGreaterThanOrEqual(lsnBytes(lsn));
      expect({ baseCount, copying }).toEqual({ baseCount: first.baseCount, copying: 1 });
    }
    const second = await now(b, running);
    isSlow = false;
    release();
    await keepUntil(b, { baseCount: first.baseCount + 1, gaps: [] });
    expect(await at(b, { kind: 'lsn', lsn: second.lsn }, count)).toEqual([{ n: 2 }]);
    await b.driver.removeProject(b.ref);
  });

  // The rest is the same on every filesystem.
  if (onXfs && !isWhole) return;

  test('a clock that is set back makes no reported time go back', async () => {
    const { b, running, paths } = await withTable();
    const state = await readState(paths);
    const later = new Date(Date.now() + 3_600_000).toISOString();
    await writeFile(
      join(paths.directory, 'history.json'),
      JSON.stringify({ ...state, copied: { ...state?.copied, at: later } }),
    );
    await b.query(running, fill(1));
    const awake = await keep(b);
    expect(awake.until?.at).toBe(later);
    expect(awake.until?.lsn).not.toBe(state?.copied?.lsn);
    await b.driver.suspend(b.ref, 1);
    expect((await keep(b)).until?.at).toBe(later);
    await b.driver.removeProject(b.ref);
  });

  test('what was prepared before the moment is prepared after it', async () => {
    const { b, running } = await withTable();
    await b.driver.suspend(b.ref, 1);
    const settings = { max_prepared_transactions: '10' };
    const other = await b.start(2, { settings });
    expect(other.generation).not.toBe(running.generation);
    await b.query(other, "BEGIN; INSERT INTO t VALUES (1); PREPARE TRANSACTION 'waits'");
    const before = await now(b, other);
    await b.query(other, "COMMIT PREPARED 'waits'");
    const branchId = newBranchId();
    const moment = { kind: 'lsn', lsn: before.lsn } as const;
    const source = { kind: 'history', branchId: b.ref.branchId, moment, adminSecret: b.adminSecret } as const;
    await b.driver.createBranch({ ...b.ref, branchId, pgVersion, source });
    const past = await b.start(1, { branchId, endpointId: newEndpointId(), settings });
    expect(await b.query(past, count)).toEqual([{ n: 0 }]);
    await b.query(past, "COMMIT PREPARED 'waits'");
    expect(await b.query(past, count)).toEqual([{ n: 1 }]);
    await b.driver.removeProject(b.ref);
  });

  test('log that the server has reused is a gap, which the next base image ends', async () => {
    const { b, running } = await withTable();
    const login = { username: 'catnap_admin', password: b.adminSecret, database: 'catnap' };
    await b.query(running, `SELECT pg_drop_replication_slot('${historySlot}')`, login);
    await b.query(running, 'INSERT INTO t VALUES (1)');
    const lost = await now(b, running);
    for (let turn = 0; turn < 3; turn += 1) {
      await b.query(running, "SELECT pg_switch_wal(); SELECT pg_logical_emit_message(true, '', '')", login);
      await b.query(running, 'CHECKPOINT', login);
    }
    const history = await keep(b);
    expect(history.gaps).toEqual([]);
    await keepUntil(b, { gaps: [{ from: expect.anything(), until: expect.anything() }] });
    await expect(at(b, { kind: 'lsn', lsn: lost.lsn }, count)).rejects.toThrow(/was lost/);
    await b.query(running, 'INSERT INTO t VALUES (2)');
    const later = await now(b, running);
    expect(await at(b, { kind: 'lsn', lsn: later.lsn }, count)).toEqual([{ n: 2 }]);
    await b.driver.removeProject(b.ref);
  });

  test('without a history the server keeps no log for one', async () => {
    const { b, running } = await withTable();
    const login = { username: 'catnap_admin', password: b.adminSecret, database: 'catnap' };
    const slots = () => b.query(running, 'SELECT slot_name FROM pg_replication_slots', login);
    expect(await slots()).toEqual([{ slot_name: historySlot }]);
    await keep(b, 0);
    expect(await slots()).toEqual([]);
    await keepUntil(b, { baseCount: 1 });
    // That of the base image goes with its session.
    await eventually(async () => expect(await slots()).toEqual([{ slot_name: historySlot }]));
    await keep(b, 0);
    expect(await slots()).toEqual([]);
    await b.driver.removeProject(b.ref);
  });

  test.skipIf(process.getuid?.() !== 0)('only Catnap can read it, and only the parent can change it', async () => {
    const { b, paths } = await withTable();
    const { uids } = subject.config;
    const [base] = await readBases(paths);
    const files = ['history.json', 'log', 'bases', join('bases', base?.name ?? '', 'pgdata', 'PG_VERSION')];
    for (const name of files) {
      const { uid, gid, mode } = await stat(join(paths.directory, name));
      expect({ name, uid, gid, others: mode & 0o027 }).toEqual({ name, uid: 0, gid: uids?.service, others: 0 });
    }
    await b.driver.removeProject(b.ref);
  });

  test('a history without its data is removed when Catnap starts', async () => {
    const { b, paths } = await withTable();
    await b.driver.removeCompute(b.ref);
    await removeLostHistories(subject.layout);
    expect(await readdir(paths.bases)).toHaveLength(1);
    await rm(subject.layout.branch(b.ref.projectId, b.ref.branchId), { recursive: true });
    await removeLostHistories(subject.layout);
    expect(await readdir(subject.layout.historiesOf(b.ref.projectId))).toEqual([]);
    await b.driver.removeProject(b.ref);
  });
}
