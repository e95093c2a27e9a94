/**
 * Clones of a server that is being written to: money only moves between accounts, and every acknowledged commit is
 * recorded, so a clone that lost or tore anything shows. The last test breaks the protocol on purpose. Runs on the
 * filesystem of the machine, and on XFS where one can be made. CATNAP_SOAK_CLONES asks for more clones.
 */

import { cp, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { randomMoment, thinkTime, usualTestMs } from '../../../../test/helpers/eventually.ts';
import { type LocalSubject, makeLocalSubject } from '../../../../test/helpers/local-subject.ts';
import { type LoopDisk, makeLoopDisk, whyNoLoopDisk } from '../../../../test/helpers/loop-disk.ts';
import { newBranchId, newEndpointId } from '../../../lib/ids.ts';
import { Bench, ownerAndDatabase, password } from '../../contract/bench.ts';
import type { ComputeObservation } from '../../interface/driver.ts';
import { adminDatabase, adminRole } from '../../interface/own-logins.ts';
import { chownTree } from '../host/copy/tree.ts';
import { dataDirectory } from '../host/home/layout.ts';

const clones = Number(process.env.CATNAP_SOAK_CLONES ?? 4);
/** Every so many clones, all indexes and tables are checked too, and every so many is a clone of changing files. */
const checkEvery = 4;
const accounts = 500;
const startBalance = 1_000;

/** Our builds do not offer the extension, but they have its library. */
const amcheck = `
  CREATE FUNCTION bt_index_check(regclass, boolean) RETURNS void AS '$libdir/amcheck' LANGUAGE C STRICT;
  CREATE FUNCTION verify_heapam(regclass, boolean DEFAULT false, boolean DEFAULT true, text DEFAULT 'none',
      bigint DEFAULT NULL, bigint DEFAULT NULL, OUT blkno bigint, OUT offnum int, OUT attnum int, OUT msg text)
    RETURNS SETOF record AS '$libdir/amcheck' LANGUAGE C`;

const noXfs = await whyNoLoopDisk('xfs');

for (const where of ['on the filesystem that is there', 'on XFS'] as const) {
  describe.skipIf(where === 'on XFS' && noXfs !== null)(`a clone of a running server ${where}`, () =>
    describeClones(where === 'on XFS'),
  );
}

function describeClones(onXfs: boolean): void {
  let disk: LoopDisk | undefined;
  let subject: LocalSubject;
  let bench: Bench;
  let sourceServer: ComputeObservation;
  let writers: Writers;

  beforeAll(async () => {
    disk = onXfs ? await makeLoopDisk('xfs', 4 * 1024 ** 3) : undefined;
    subject = await makeLocalSubject(17, disk?.path);
    bench = new Bench(subject);
    sourceServer = await bench.started();
    await bench.driver.configure(bench.ref, ownerAndDatabase);
    await bench.query(
      sourceServer,
      `CREATE TABLE accounts AS SELECT n AS id, ${startBalance} AS balance, repeat('x', 200) AS padding
         FROM generate_series(1, ${accounts}) n;
       CREATE UNIQUE INDEX ON accounts (id);
       CREATE TABLE commits (writer int, n int, PRIMARY KEY (writer, n))`,
    );
    writers = new Writers(sourceServer, 4);
  });

  afterAll(async () => {
    try {
      await writers.stop();
      await bench.driver.removeProject(bench.ref);
      expect(await subject.leftovers()).toEqual([]);
      await subject.close();
    } finally {
      await disk?.remove();
    }
  });

  /** What is wrong with a copy; empty when nothing is. */
  async function faults(on: ComputeObservation, acknowledged: readonly number[]): Promise<string[]> {
    const found: string[] = [];
    // Without the index, then with it: both must return the same.
    for (const scan of ['SET enable_indexscan = off; SET enable_indexonlyscan = off;', 'SET enable_seqscan = off;']) {
      const count = 'SELECT sum(balance)::int AS sum, count(*)::int AS count FROM accounts WHERE id > 0';
      const sum = (await bench.query(on, `${scan} ${count}`))?.flat().at(-1) as { sum: number; count: number };
      if (sum.sum !== accounts * startBalance) found.push(`the sum is ${sum.sum}`);
      if (sum.count !== accounts) found.push(`there are ${sum.count} accounts`);
    }
    for (const [writer, n] of acknowledged.entries()) {
      const [row] = (await bench.query(
        on,
        `SELECT count(*)::int AS count FROM commits WHERE writer = ${writer} AND n <= ${n}`,
      )) as { count: number }[];
      if (row?.count !== n) found.push(`writer ${writer} had ${n} commits, ${row?.count} are there`);
    }
    return found;
  }

  /** Postgres's own check of every table and index, including its catalog. The clone is used for nothing else. */
  async function corruption(on: ComputeObservation): Promise<unknown[]> {
    // Only superusers may run it, and Catnap's own does not enter tenants' databases.
    const admin = { username: adminRole, password: bench.adminSecret, database: adminDatabase };
    await bench.query(on, 'ALTER ROLE owner SUPERUSER', admin);
    await bench.query(on, amcheck);
    const indexes = `SELECT bt_index_check(c.oid, true) FROM pg_class c JOIN pg_am a ON a.oid = c.relam
      WHERE a.amname = 'btree' AND c.relkind = 'i' AND c.relpersistence = 'p'`;
    expect((await bench.query(on, indexes))?.length).toBeGreaterThan(100);
    const heap = `SELECT c.relname, v.* FROM pg_class c, LATERAL verify_heapam(c.oid) v WHERE c.relkind IN ('r', 't', 'm')`;
    return (await bench.query(on, heap)) ?? [];
  }

  async function remove(child: { branchId: Bench['ref']['branchId']; endpointId: Bench['ref']['endpointId'] }) {
    await bench.driver.removeCompute({ ...bench.ref, ...child });
    await bench.driver.removeBranch({ ...bench.ref, ...child });
  }

  test(`is consistent at ${clones} random moments, and has every commit from before`, {
    timeout: usualTestMs + clones * 10_000,
  }, async () => {
    for (let round = 0; round < clones; round++) {
      await randomMoment(150);
      const before = writers.acknowledged();
      const child = { branchId: newBranchId(), endpointId: newEndpointId() };
      const isSample = round % checkEvery === checkEvery - 1;
      const [receipt] = await Promise.all([bench.cloneBranch(child.branchId), isSample ? churn() : null]);
      if (onXfs) expect(receipt.method).toBe('reflink');
      const running = await bench.start(1, child);
      expect(await faults(running, before), `clone ${round}`).toEqual([]);
      if (isSample) expect(await corruption(running), `clone ${round}`).toEqual([]);
      const [facts] = (await bench.query(running, 'SELECT pg_is_in_recovery() AS waiting')) ?? [];
      expect(facts).toEqual({ waiting: false });
      await remove(child);
    }
    expect(writers.failure).toBeNull();
    expect(Math.min(...writers.acknowledged())).toBeGreaterThan(clones);
  });

  /** Files are created, removed and truncated while they are copied. */
  async function churn(): Promise<void> {
    await bench.query(
      sourceServer,
      `CREATE TABLE passing AS SELECT repeat('y', 1000) AS t FROM generate_series(1, 20000); DROP TABLE passing`,
    );
    await bench.query(sourceServer, 'VACUUM accounts');
  }

  test('several at once are consistent too', async () => {
    const before = writers.acknowledged();
    const children = Array.from({ length: 3 }, () => ({ branchId: newBranchId(), endpointId: newEndpointId() }));
    await Promise.all(children.map((child) => bench.cloneBranch(child.branchId)));
    for (const child of children) {
      expect(await faults(await bench.start(1, child), before)).toEqual([]);
      await remove(child);
    }
  });

  test('that is never finished leaves nothing that is seen, and the next attempt succeeds', async () => {
    const branchId = newBranchId();
    const folder = subject.layout.branches(bench.ref.projectId);
    const breaking = bench.cloneBranch(branchId);
    // The backup's session ends in the middle of it, as when a worker dies.
    const admin = { username: 'catnap_admin', password: bench.adminSecret, database: 'catnap' };
    const kill = `SELECT count(pg_terminate_backend(active_pid))::int AS ended FROM pg_replication_slots WHERE temporary`;
    await expect.poll(async () => (await bench.query(sourceServer, kill, admin))?.[0]?.ended, { interval: 1 }).toBe(1);
    await expect(breaking).rejects.toThrow();
    expect((await readdir(folder)).filter((name) => name.includes(branchId))).toEqual([]);
    const slots = 'SELECT count(*)::int AS count FROM pg_replication_slots WHERE temporary';
    await expect.poll(async () => (await bench.query(sourceServer, slots, admin))?.[0]?.count).toBe(0);
    const before = writers.acknowledged();
    await bench.cloneBranch(branchId);
    const child = { branchId, endpointId: newEndpointId() };
    expect(await faults(await bench.start(1, child), before)).toEqual([]);
    await remove(child);
  });

  test('the check finds a copy that was made without the protocol', async () => {
    const { layout } = subject;
    const { projectId, tenantUid } = bench.ref;
    const source = dataDirectory(layout.branch(projectId, bench.ref.branchId));
    // Guards against chance: one copy may happen to be right, but not several in a row.
    for (let attempt = 0; attempt < 5; attempt++) {
      const before = writers.acknowledged();
      const child = { branchId: newBranchId(), endpointId: newEndpointId() };
      // A branch of the template provides the directory and the record; its data is then replaced.
      await bench.createBranch(child.branchId);
      const target = dataDirectory(layout.branch(projectId, child.branchId));
      await rm(target, { recursive: true });
      await mkdir(target, { mode: 0o700 });
      await naiveCopy(source, target);
      if (tenantUid !== null) await chownTree(target, tenantUid);
      await rm(join(layout.branch(projectId, child.branchId), 'first-secret'), { force: true });
      // Only what the check itself reports counts: a copy that does not start or cannot be read is caught without it.
      const wrong = await bench.start(1, child).then(
        (running) => faults(running, before).catch(() => []),
        () => [],
      );
      await remove(child);
      if (wrong.length > 0) return;
    }
    expect.fail('the check found nothing wrong with five naive copies');
  });

  /** The tables first, then a checkpoint and more writes, then the WAL and the control file: no backup, no label. */
  async function naiveCopy(source: string, target: string): Promise<void> {
    const skipped = ['postmaster.pid', 'postmaster.opts', 'base', 'global', 'pg_wal', 'pg_xact'];
    const copy = (name: string) => cp(join(source, name), join(target, name), { recursive: true });
    await copy('base');
    const written = writers.acknowledged();
    await expect.poll(() => writers.acknowledged().every((n, index) => n > (written[index] ?? 0) + 20)).toBe(true);
    await bench.query(sourceServer, 'CHECKPOINT', {
      username: 'catnap_admin',
      password: bench.adminSecret,
      database: 'catnap',
    });
    for (const name of ['global', 'pg_wal', 'pg_xact']) await copy(name);
    for (const name of await readdir(source)) if (!skipped.includes(name)) await copy(name);
  }
}

/** Clients that move money almost without a pause, and record what the server acknowledged as committed. */
class Writers {
  readonly #sql: postgres.Sql;
  readonly #done: number[];
  readonly #loops: Promise<void>[];
  #running = true;
  failure: unknown = null;

  constructor(on: ComputeObservation, count: number) {
    const path = on.address?.kind === 'unix' ? on.address.path : '';
    this.#sql = postgres({ path, username: 'owner', password, database: 'app', max: count });
    this.#done = Array.from({ length: count }, () => 0);
    this.#loops = this.#done.map((_, writer) =>
      this.#write(writer).catch((error: unknown) => {
        this.failure = error;
      }),
    );
  }

  /** For each writer the number of its commits, all acknowledged. */
  acknowledged(): number[] {
    return [...this.#done];
  }

  async stop(): Promise<void> {
    this.#running = false;
    await Promise.all(this.#loops);
    await this.#sql.end({ timeout: 1 });
  }

  async #write(writer: number): Promise<void> {
    while (this.#running) {
      const n = (this.#done[writer] ?? 0) + 1;
      // In one order, so that two transfers never wait for each other.
      const [a, b] = [pick(), pick()].sort((x, y) => x - y) as [number, number];
      await this.#sql.begin(async (tx) => {
        await tx`UPDATE accounts SET balance = balance - 1 WHERE id = ${a}`;
        await tx`UPDATE accounts SET balance = balance + 1 WHERE id = ${b}`;
        await tx`INSERT INTO commits VALUES (${writer}, ${n})`;
      });
      this.#done[writer] = n;
      await thinkTime(4);
    }
  }
}

const pick = () => 1 + Math.floor(Math.random() * accounts);
