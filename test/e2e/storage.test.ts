/**
 * The whole program on an image that `catnap storage create` made from a home in use: branches of branches of branches
 * share their blocks, and what is deleted, or was being made when Catnap was killed, takes no room.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { readdir, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { detectCloneMethod } from '../../src/compute/local/host/copy/method.ts';
import { runProgram } from '../../src/lib/run-program.ts';
import { eventually } from '../helpers/eventually.ts';
import { whyNoLoopDisk } from '../helpers/loop-disk.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

const entry = fileURLToPath(new URL('../../dist/bin.js', import.meta.url));
const mebibyte = 1024 ** 2;
/** How often Catnap is killed at each moment. Unset: once, at the moments that a random kill would hardly meet. */
const rounds = Number(process.env.CATNAP_SOAK_KILLS ?? 0);
const seldom = ['the label is written', 'it is in its place', 'it is taken out of its place'];
const rows = '40000';
const problem = await whyNoLoopDisk('xfs');

interface Made {
  readonly id: string;
  readonly uri: string;
}

describe.skipIf(problem !== null || (await detectCloneMethod('/tmp')) === 'reflink')('on a storage image', () => {
  let program: Program;
  let projectId: string;
  let root: Made;

  beforeAll(async () => {
    program = await Program.create();
    await program.start();
    expect(program.output).toMatch(/Note +branches will be full copies: .*catnap storage create/);
    const { body } = await program.api('POST', '/projects', {
      // What a history takes is measured elsewhere.
      project: { name: 'moved', history_retention_seconds: 0 },
    });
    projectId = body.project.id;
    root = { id: body.branch.id, uri: body.connection_uris[0].connection_uri };
    await ask(root.uri, `create table t as select n, repeat('x', 500) as x from generate_series(1, ${rows}) n`);
  });
  afterAll(() => program.destroy());

  async function catnap(...args: string[]): Promise<{ code: number | null; text: string }> {
    const env = { PATH: process.env.PATH, CATNAP_HOME: program.home.path };
    const child = spawn(process.execPath, [entry, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (text += chunk));
    await once(child, 'close');
    return { code: child.exitCode, text };
  }

  async function makeBranch(parent: Made, withCompute = true): Promise<Made> {
    const endpoints = withCompute ? [{ type: 'read_write' }] : [];
    const input = { branch: { parent_id: parent.id }, endpoints };
    const { body } = await program.api('POST', `/projects/${projectId}/branches`, input);
    return { id: body.branch.id, uri: body.connection_uris?.[0].connection_uri ?? '' };
  }

  const getBranch = async ({ id }: Made) =>
    (await program.api('GET', `/projects/${projectId}/branches/${id}`)).body.branch;
  const deleteBranch = ({ id }: Made) =>
    program.api('DELETE', `/projects/${projectId}/branches/${id}?hard_delete=true`);
  const storage = (...names: string[]) => join(program.home.path, 'storage', ...names);

  async function usedBytes(): Promise<number> {
    await runProgram('sync', ['-f', storage()]);
    const { bsize, blocks, bfree } = await statfs(storage());
    return bsize * (blocks - bfree);
  }

  it('is refused while Catnap or a server runs, and then takes a home in use with all it has', async () => {
    expect(await catnap('storage', 'create', '--size', '3G', '--yes')).toMatchObject({
      code: 1,
      text: expect.stringContaining('Postgres servers run on'),
    });
    await program.stop();
    expect((await catnap('storage', 'create', '--size', '3G', '--yes')).text).toContain('--stop-computes');
    await program.start(['--stop-computes']);
    await program.stop();
    const made = await catnap('storage', 'create', '--size', '3G', '--yes');
    expect(made).toMatchObject({ code: 0, text: expect.stringContaining('everything is in the image now') });
    await program.start();
    expect(program.output).not.toContain('full copies');
    expect(await ask(root.uri, 'select count(*) from t where length(x) = 500')).toBe(rows);
    expect((await catnap('storage', 'status')).text).toMatch(/method: +reflink/);
    expect((await catnap('doctor')).text).toMatch(/reflinks +branches share the blocks of their parent/);
  });

  it('a branch of a branch of a branch has its rows, a receipt and a size, and next to no space of its own', async () => {
    const line = [root];
    for (let depth = 1; depth <= 3; depth++) {
      const child = await makeBranch(line.at(-1) ?? root);
      await ask(child.uri, `insert into t values (-${depth}, 'own')`);
      line.push(child);
    }
    const leaf = line.at(-1) ?? root;
    expect(await ask(leaf.uri, 'select count(*) from t where n < 0')).toBe('3');
    expect(await ask(root.uri, 'select count(*) from t where n < 0')).toBe('0');
    const { receipt, logical_size: size } = await getBranch(leaf);
    expect(receipt).toMatchObject({ method: 'reflink', lsn: expect.stringMatching(/^[0-9A-F]+\/[0-9A-F]+$/) });
    expect(receipt.bytes_shared).toBeGreaterThan(30 * mebibyte);
    expect(receipt.bytes_copied).toBe(0);
    expect(size).toBeGreaterThan(30 * mebibyte);
    const status = JSON.parse((await catnap('storage', 'status', '--json')).text);
    const use = status.branches.find(({ branch }: { branch: string }) => branch === leaf.id);
    expect(use.bytes - use.shared).toBeLessThan(64 * mebibyte);

    const [, child] = line;
    const refused = await program.api('DELETE', `/projects/${projectId}/branches/${child?.id}`);
    expect(refused).toMatchObject({ status: 422, body: { message: expect.stringContaining(line[2]?.id ?? '?') } });
    for (const made of line.slice(1).reverse()) {
      expect((await deleteBranch(made)).status).toBe(200);
      await program.settle(projectId);
    }
  });

  it('a leaf that is deleted gives back what it alone had', async () => {
    const before = await usedBytes();
    const leaf = await makeBranch(root);
    await ask(leaf.uri, `create table own as select n, repeat('y', 900) as y from generate_series(1, 100000) n`);
    expect((await usedBytes()) - before).toBeGreaterThan(80 * mebibyte);
    await deleteBranch(leaf);
    await program.settle(projectId);
    await eventually(async () => expect((await usedBytes()) - before).toBeLessThan(40 * mebibyte));
  });

  /** What the host's directories look like at each step of making and deleting a branch. */
  const moments: Record<string, { readonly deleting: boolean; readonly isNow: (id: string) => boolean }> = {
    'the copy begins': { deleting: false, isNow: (id) => unfinished(id) !== undefined },
    'files are copied': { deleting: false, isNow: (id) => hasUnfinished(id, 'global/pg_control') },
    'the log is added': { deleting: false, isNow: (id) => hasUnfinished(id, 'pg_wal') },
    'the label is written': { deleting: false, isNow: (id) => hasUnfinished(id, 'backup_label') },
    'it is in its place': { deleting: false, isNow: (id) => existsSync(branches(id)) },
    'it is taken out of its place': { deleting: true, isNow: (id) => !existsSync(branches(id)) },
  };
  const branches = (...names: string[]) => storage('projects', projectId, 'branches', ...names);
  const unfinished = (id: string) => readdirSync(branches()).find((name) => name.startsWith(`.${id}-`));
  const hasUnfinished = (id: string, file: string) => existsSync(branches(unfinished(id) ?? 'none', 'pgdata', file));

  /** Kills Catnap when the moment has come; false when it was over before it was seen. */
  async function killAt({ id }: Made, isNow: (id: string) => boolean): Promise<boolean> {
    let isSeen = isNow(id);
    for (const wasThere = existsSync(branches(id)); !isSeen && existsSync(branches(id)) === wasThere; ) {
      await new Promise((resolve) => setImmediate(resolve));
      isSeen = isNow(id);
    }
    if (isSeen) {
      await program.killHard();
      await program.start();
    }
    await program.settle(projectId);
    return isSeen;
  }

  const tried = Object.keys(moments).filter((name) => rounds > 0 || seldom.includes(name));

  it.each(tried)('killed when %s, leaves no half branch and no space', { timeout: 600_000 }, async (name) => {
    const { deleting, isNow } = moments[name] ?? { deleting: false, isNow: () => false };
    const before = await usedBytes();
    const kept = await readdir(branches());
    for (let [killed, missed] = [0, 0]; killed < Math.max(1, rounds); ) {
      const made = await makeBranch(root, !deleting);
      if (deleting) {
        await program.settle(projectId);
        await deleteBranch(made);
      }
      if (await killAt(made, isNow)) killed++;
      else missed++;
      expect(missed, 'times that the moment was not seen').toBeLessThan(6);
      if (deleting) continue;
      expect((await getBranch(made)).current_state).toBe('ready');
      expect(await ask(made.uri, 'select count(*) from t')).toBe(rows);
      expect((await readdir(branches())).sort()).toEqual([...kept, made.id].sort());
      await deleteBranch(made);
      await program.settle(projectId);
    }
    expect(await readdir(branches())).toEqual(kept);
    expect(await readdir(storage('trash'))).toEqual([]);
    // What the parent itself wrote meanwhile is its log.
    await eventually(async () => expect((await usedBytes()) - before).toBeLessThan(50 * mebibyte));
  });
});
