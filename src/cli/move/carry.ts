/**
 * The copy and the cut-over. Databases are copied while they are in use, and their changes follow. When all of them
 * have caught up, they are closed to their clients: a rename over the API ends every session and lets nobody in who
 * does not know the new name. What was written last follows, and the copies are finished. A run after a kill finds
 * closed databases closed, and goes on.
 */
import { branchPath, databasesOf, type Place, untilQuiet, uriOf, verifiersOf } from '../catalog/place.ts';
import { takePasswords } from '../catalog/roles.ts';
import type { ImportReport } from '../kit/copy-parts.ts';
import { describeCopy } from '../kit/copy-progress.ts';
import { CliFailure } from '../kit/failure.ts';
import type { UpdateProjectBranchDatabaseReply } from '../kit/generated.ts';
import { untilDone } from '../kit/operations.ts';
import { progressLine } from '../kit/progress-line.ts';
import type { Session } from '../kit/session.ts';
import type { MoveOptions, MovePlan, PlannedDatabase } from './plan.ts';
import type { StateFile } from './state.ts';

export interface Carrying {
  readonly session: Session;
  readonly plan: MovePlan;
  readonly target: Place;
  readonly state: StateFile;
  readonly options: MoveOptions;
  /** Resolves when the databases may be closed. */
  readonly untilCutOver: () => Promise<void>;
}

export interface Carried {
  readonly reports: readonly ImportReport[];
  readonly notes: readonly string[];
}

/** How long the databases were closed is in the state. */
export async function carry(carrying: Carrying): Promise<Carried> {
  const { state, options, untilCutOver, session, plan } = carrying;
  if (!(await isClosed(carrying))) {
    await state.change({ closedAs: undefined, closedAt: undefined });
    if (options.method === 'replication') await copyUntilCaughtUp(carrying);
    else await untilCutOver();
    await state.change({ closedAt: new Date().toISOString(), closedAs: await closedNames(carrying) });
  }
  const names = state.read().closedAs ?? {};
  await renameDatabases(plan.source, Object.entries(names));
  // One that was made in the source since then is not closed, so its last rows would be missing.
  const closed = plan.databases.filter(({ name }) => names[name] !== undefined);
  const reports = await inParallel(session, closed, (database, show) => copy(carrying, database, show));
  await takeNewPasswords(carrying);
  await state.change({ finishedAt: new Date().toISOString() });
  const late = (await databasesOf(plan.source)).filter(({ name }) => !Object.values(names).includes(name));
  return {
    reports: reports.filter((one) => one !== null),
    notes: late.map(({ name }) => `database ${name} was made during the move, and stays where it is`),
  };
}

/** Those that somebody has changed while the databases were copied. */
async function takeNewPasswords({ session, plan, target }: Carrying): Promise<void> {
  const now = await verifiersOf(plan.source);
  if ([...plan.verifiers].every(([name, verifier]) => now.get(name) === verifier)) return;
  await takePasswords(session, plan.source, target, plan);
}

/** Whether an earlier run has begun to close the databases. */
async function isClosed({ plan, state }: Carrying): Promise<boolean> {
  const names = Object.values(state.read().closedAs ?? {});
  return (await databasesOf(plan.source)).some(({ name }) => names.includes(name));
}

/** One after the other: those that have caught up go on following until the last one has. */
async function copyUntilCaughtUp(carrying: Carrying): Promise<void> {
  const { session, plan, untilCutOver } = carrying;
  const gate = meeting(plan.databases.length, untilCutOver);
  let before = Promise.resolve();
  await inParallel(session, plan.databases, async (database, show) => {
    const turn = before;
    let pass = () => {};
    before = new Promise((resolve) => {
      pass = resolve;
    });
    try {
      await turn;
      gate.requireWhole();
      const arrive = () => {
        pass();
        return gate.arrive();
      };
      await copy(carrying, database, show, arrive);
    } catch (error) {
      // The others must not wait for this one.
      gate.fail(error);
      throw error;
    } finally {
      pass();
    }
  });
}

/** Lets all go on when the last one has come and `then` has resolved. */
function meeting(count: number, then: () => Promise<void>) {
  let open = () => {};
  let refuse: (error: unknown) => void = () => {};
  const opened = new Promise<void>((resolve, reject) => {
    open = resolve;
    refuse = reject;
  });
  const failures: unknown[] = [];
  const fail = (error: unknown) => {
    failures.push(error);
    refuse(error);
  };
  // It may fail before anybody has come.
  opened.catch(() => {});
  let missing = count;
  return {
    async arrive(): Promise<void> {
      missing -= 1;
      if (missing === 0) then().then(open, fail);
      return opened;
    },
    fail,
    /** Throws if one of them will not come. */
    requireWhole(): void {
      if (failures.length > 0) throw failures[0];
    },
  };
}

type Show = (text: string) => void;

async function inParallel<T>(
  { parts }: Session,
  databases: readonly PlannedDatabase[],
  work: (database: PlannedDatabase, show: Show) => Promise<T>,
): Promise<T[]> {
  const line = progressLine(parts.stderr);
  try {
    const all = await Promise.allSettled(
      databases.map((database) => work(database, (text) => line.show(`${database.name}: ${text}`))),
    );
    const failed = all.find((one) => one.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    return all.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  } finally {
    line.clear();
  }
}

async function copy(
  { session, plan, target, options, state }: Carrying,
  { name, owner }: PlannedDatabase,
  show: Show,
  untilPause?: () => Promise<void>,
): Promise<ImportReport | null> {
  const sourceName = state.read().closedAs?.[name] ?? name;
  const request = {
    source: await uriOf(plan.source, sourceName, owner),
    target: await uriOf(target, name, owner),
    knownAs: name,
    method: options.method,
    withoutLargeObjects: !options.largeObjects,
    ...(untilPause !== undefined && { untilPause }),
  };
  return session.parts.move.copy(request, (progress) => show(describeCopy(progress)));
}

const nameBytesMax = 63;

async function closedNames({ plan }: Carrying): Promise<Readonly<Record<string, string>>> {
  const taken = new Set((await databasesOf(plan.source)).map(({ name }) => name));
  return Object.fromEntries(
    plan.databases.map(({ name }) => {
      let closed = fitting(name, '_moved');
      for (let n = 2; taken.has(closed); n += 1) closed = fitting(name, `_moved${n}`);
      taken.add(closed);
      return [name, closed];
    }),
  );
}

function fitting(name: string, suffix: string): string {
  const characters = [...name];
  while (Buffer.byteLength(characters.join('') + suffix) > nameBytesMax) characters.pop();
  return characters.join('') + suffix;
}

/** From the first name of each pair to the second, unless that is done. Returns when the server has done it. */
export async function renameDatabases(
  place: Place,
  pairs: readonly (readonly [from: string, to: string])[],
): Promise<void> {
  const there = new Set((await databasesOf(place)).map(({ name }) => name));
  const renaming = pairs
    .filter(([from]) => there.has(from))
    .map(([from, to]) =>
      place.client.patch<UpdateProjectBranchDatabaseReply>(
        `${branchPath(place)}/databases/${encodeURIComponent(from)}`,
        { database: { name: to } },
      ),
    );
  for (const { operations } of await Promise.all(renaming)) await untilDone(place.client, operations);
  // An earlier run may have asked for it and not have waited.
  await untilQuiet(place);
  const now = new Set((await databasesOf(place)).map(({ name }) => name));
  const left = pairs.filter(([, to]) => !now.has(to)).map(([from]) => from);
  if (left.length > 0) throw new CliFailure(`these databases could not be renamed: ${left.join(', ')}`);
}
