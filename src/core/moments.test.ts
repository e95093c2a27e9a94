import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { type BranchChange, type BranchRow, insertBranch, selectBranch, updateBranch } from '../db/branches.ts';
import { updateProject } from '../db/projects.ts';
import { hourMs, minuteMs } from '../lib/clock.ts';
import { type BranchId, newBranchId } from '../lib/ids.ts';
import type { BranchHistory } from '../lib/model.ts';
import { lsnText } from '../lib/moments.ts';
import { readScope, type Scope } from './context.ts';
import { historyWindow, type MomentInput, resolveMoment } from './moments.ts';

const now = new Date('2026-05-01T12:00:00.000Z');
const fields = { lsn: 'body.lsn', timestamp: 'body.timestamp' };

let made: TestCore;
let scope: Scope;
let root: BranchRow;
beforeAll(async () => {
  made = await makeCore();
  scope = { ...readScope(made.core), clock: { now: () => now } };
  root = await withHistory((await makeProject(made)).branch, historyOf(600, 0));
});
afterAll(() => made.close());

/** Minutes before now, as a time and as a position in one log that all branches share. */
const at = (minutes: number) => new Date(now.getTime() - minutes * minuteMs).toISOString();
const lsn = (minutes: number) => lsnText(BigInt(2_000_000 - minutes * 1_000));
const position = (minutes: number) => ({ at: at(minutes), lsn: lsn(minutes) });

function historyOf(from: number, until: number, gaps: readonly (readonly [number, number])[] = []): BranchHistory {
  return {
    from: position(from),
    until: position(until),
    gaps: gaps.map(([begin, end]) => ({ from: position(begin), until: position(end) })),
    baseCount: 1,
    baseBytes: 0,
    logBytes: 0,
  };
}

async function withHistory(branch: BranchRow, history: BranchHistory | null, change: BranchChange = {}) {
  const { sql } = made.core.database;
  await sql`update branches set history = ${sql.json(JSON.parse(JSON.stringify(history)))} where id = ${branch.id}`;
  await updateBranch(sql, branch.id, { currentState: 'ready', pendingState: null, ...change });
  return (await selectBranch(sql, branch.projectId, branch.id)) as BranchRow;
}

async function childOf(parent: BranchRow, forked: number, history: BranchHistory | null, initSource = 'parent-data') {
  const { projectId, createdBy } = root;
  const id = newBranchId();
  const plain = { projectId, createdBy, isDefault: false, protected: false, expiresAt: null, annotation: {} };
  const child = await insertBranch(made.core.database.sql, {
    ...plain,
    id,
    name: id,
    initSource,
    parentId: parent.id,
    parentTimestamp: new Date(at(forked)),
  });
  return withHistory(child, history, { parentLsn: lsn(forked) });
}

const resolve = (branch: BranchRow, input: MomentInput) => resolveMoment(scope, branch, input, fields);

async function ownerAt(branch: BranchRow, minutes: number): Promise<readonly BranchId[]> {
  const byTime = await resolve(branch, { timestamp: at(minutes) });
  const byLsn = await resolve(branch, { lsn: lsn(minutes) });
  expect(byTime.moment).toEqual({ kind: 'time', at: at(minutes) });
  expect(byLsn.moment).toEqual({ kind: 'lsn', lsn: lsn(minutes) });
  return [byTime.branchId, byLsn.branchId];
}

describe('a moment that cannot be read', () => {
  test.each<[MomentInput, RegExp]>([
    [{}, /body.lsn or body.timestamp is required/],
    [{ lsn: '0/1', timestamp: at(1) }, /body.lsn and body.timestamp exclude each other/],
    [{ lsn: 'zero' }, /body.lsn must be a position in the log/],
    [{ timestamp: 'yesterday' }, /body.timestamp must be a time such as/],
  ])('%o is a bad request', async (input, message) => {
    await expect(resolve(root, input)).rejects.toMatchObject({
      kind: 'invalid_request',
      message: expect.stringMatching(message),
    });
  });

  test('the future is refused', async () => {
    await expect(resolve(root, { timestamp: at(-1) })).rejects.toMatchObject({
      kind: 'unprocessable',
      message: 'body.timestamp must not be in the future',
    });
  });
});

describe('the history of the branch itself', () => {
  test('gives what is in it, and what was written since the last report', async () => {
    expect(await ownerAt(root, 600)).toEqual([root.id, root.id]);
    expect(await ownerAt(root, 1)).toEqual([root.id, root.id]);
    const child = await childOf(root, 60, historyOf(59, 30));
    expect(await ownerAt(child, 1)).toEqual([child.id, child.id]);
  });

  test('keeps the microseconds of a time', async () => {
    const { moment } = await resolve(root, { timestamp: '2026-05-01T10:00:00.123456+02:00' });
    expect(moment).toEqual({ kind: 'time', at: '2026-05-01T08:00:00.123456Z' });
  });

  test('outside of it, the message gives the window', async () => {
    const window = `which reaches from ${at(600)} to ${at(0)}, by LSN from ${lsn(600)} to ${lsn(0)}`;
    for (const input of [{ timestamp: at(601) }, { lsn: lsn(601) }, { lsn: 'FFFFFFFF/0' }]) {
      await expect(resolve(root, input)).rejects.toMatchObject({
        kind: 'unprocessable',
        message: expect.stringContaining(window),
      });
    }
  });

  test('a gap is named', async () => {
    const child = await childOf(root, 120, historyOf(110, 0, [[60, 50]]));
    expect(await ownerAt(child, 60)).toEqual([child.id, child.id]);
    expect(await ownerAt(child, 50)).toEqual([child.id, child.id]);
    for (const input of [{ timestamp: at(55) }, { lsn: lsn(55) }]) {
      await expect(resolve(child, input)).rejects.toThrow(
        /is in a gap of the history: nothing between 2026-05-01T11:00/,
      );
    }
  });

  test('before any was reported, the driver has the word; if there is none, that is said', async () => {
    const child = await childOf(root, 5, null);
    expect(await ownerAt(child, 1)).toEqual([child.id, child.id]);
    expect(await historyWindow(scope, child)).toBeNull();
    const none = { ...historyOf(0, 0), from: null, until: null };
    await expect(resolve(await withHistory(child, none), { timestamp: at(1) })).rejects.toThrow(/has no history yet/);
    const unmade = await withHistory(child, null, { currentState: 'init' });
    await expect(resolve(unmade, { timestamp: at(1) })).rejects.toThrow(/has no history yet/);
  });

  test('before the root branch, the message says when its history begins', async () => {
    const { branch } = await makeProject(made, 'fresh');
    const fresh = await withHistory(branch, null);
    const begins = `which begins with the branch, at ${fresh.createdAt.toISOString()}`;
    await expect(resolve(fresh, { timestamp: at(60 * 24 * 400) })).rejects.toThrow(begins);
  });
});

describe('before the branch began', () => {
  test('its parent gives the moment, and so on', async () => {
    const child = await childOf(root, 300, historyOf(299, 0));
    const grandchild = await childOf(child, 100, historyOf(99, 0));
    expect(await ownerAt(grandchild, 100)).toEqual([child.id, child.id]);
    expect(await ownerAt(grandchild, 300)).toEqual([root.id, root.id]);
    expect(await ownerAt(grandchild, 500)).toEqual([root.id, root.id]);
    expect(await historyWindow(scope, grandchild)).toEqual({ from: new Date(at(600)), until: now });
  });

  test('while it was copied, it held what its parent did where the two parted', async () => {
    const child = await childOf(root, 300, historyOf(200, 0));
    const parted = { branchId: root.id, moment: { kind: 'lsn', lsn: lsn(300) } };
    expect(await resolve(child, { timestamp: at(250) })).toEqual(parted);
    const refusal = /parted from its parent at .*its own history begins at/;
    await expect(resolve(child, { lsn: lsn(250) })).rejects.toThrow(refusal);
    const restored = await withHistory(child, historyOf(200, 0), { lastResetAt: new Date(at(200)) });
    await expect(resolve(restored, { timestamp: at(250) })).rejects.toThrow(refusal);
  });

  test('a schema-only branch has no past', async () => {
    const child = await childOf(root, 300, historyOf(299, 0), 'schema-only');
    await expect(resolve(child, { timestamp: at(400) })).rejects.toThrow(/outside the history/);
    expect(await historyWindow(scope, child)).toEqual({ from: new Date(at(299)), until: now });
  });

  test('a parent that is deleted gives nothing', async () => {
    const child = await childOf(root, 300, historyOf(299, 0));
    const grandchild = await childOf(child, 100, historyOf(99, 0));
    await updateBranch(made.core.database.sql, child.id, { deletingAt: now });
    await expect(resolve(grandchild, { timestamp: at(200) })).rejects.toThrow(/its parent is deleted/);
  });
});

describe('history_retention_seconds', () => {
  test('bounds the window, and 0 keeps nothing', async () => {
    const { branch, project } = await makeProject(made, 'short');
    const short = await withHistory(branch, historyOf(600, 0));
    const keep = (seconds: number) =>
      command(made, ({ tx }) => updateProject(tx, project.id, { historyRetentionSeconds: seconds }));
    await keep(hourMs / 1_000);
    expect(await ownerAt(short, 60)).toEqual([short.id, short.id]);
    await expect(resolve(short, { timestamp: at(61) })).rejects.toThrow(`reaches from ${at(60)}`);
    await keep(0);
    await expect(resolve(short, { timestamp: at(1) })).rejects.toThrow(/history_retention_seconds of the project is 0/);
  });
});
