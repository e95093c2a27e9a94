/** A base image is made once, however those that want it meet: two reconcilers, and a branch at a moment. */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../../../test/helpers/eventually.ts';
import { type LocalSubject, makeLocalSubject } from '../../../../test/helpers/local-subject.ts';
import { newBranchId, newEndpointId } from '../../../lib/ids.ts';
import { Bench } from '../../contract/bench.ts';
import { baseCopies } from '../host/history/bases.ts';
import { historyPaths, readBases } from '../host/history/files.ts';
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
