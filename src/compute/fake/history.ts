/** The past of a branch in the fake driver: every version of its content, from its one base image on. */
import type { BranchHistory } from '../../lib/model.ts';
import { type LogPosition, lsnBytes, lsnText, type Moment } from '../../lib/moments.ts';
import type { UserChange } from '../../lib/users-sync.ts';
import { type DesiredRole, NoSuchMomentError } from '../interface/driver.ts';

export interface FakeUsers {
  readonly position: number;
  /** The last change of each user. */
  readonly rows: ReadonlyMap<string, UserChange>;
}

/** What a version holds; the parts of a branch that servers write. */
export interface FakeContent {
  readonly roles: ReadonlyMap<string, DesiredRole>;
  readonly databases: ReadonlyMap<string, string>;
  readonly users: ReadonlyMap<string, FakeUsers>;
}

interface Version {
  readonly micros: number;
  readonly lsn: bigint;
  readonly content: FakeContent;
}

export interface FakeLog {
  lsn: bigint;
  /** Empty without a base image, else the first one is the base image. */
  versions: readonly Version[];
  /** Set by tests. */
  gaps: BranchHistory['gaps'];
}

const bytesPerVersion = 256;

export const newLog = (lsn = 0x100_0000n): FakeLog => ({ lsn, versions: [], gaps: [] });

/** The data of a branch was made or exchanged: its history begins with that. */
export function beginLog(log: FakeLog, content: FakeContent): void {
  log.versions = [versionOf(log, content)];
}

/** As after a commit in the branch's server. */
export function commitTo(log: FakeLog, content: FakeContent): void {
  log.lsn += BigInt(bytesPerVersion);
  if (log.versions.length > 0) log.versions = [...log.versions, versionOf(log, content)];
}

export function keepLog(log: FakeLog, content: FakeContent, retentionSeconds: number): BranchHistory {
  if (retentionSeconds === 0) {
    log.versions = [];
    log.gaps = [];
  } else {
    if (log.versions.length === 0) beginLog(log, content);
    catchUp(log, content);
    const oldest = nowMicros() - retentionSeconds * 1e6;
    const base = log.versions.findLastIndex(({ micros }) => micros <= oldest);
    log.versions = log.versions.slice(Math.max(base, 0));
  }
  const [first] = log.versions;
  return {
    from: first === undefined ? null : positionOf(first),
    until: first === undefined ? null : positionOf({ micros: nowMicros(), lsn: log.lsn }),
    gaps: log.gaps,
    baseCount: first === undefined ? 0 : 1,
    baseBytes: 0,
    logBytes: Math.max(0, log.versions.length - 1) * bytesPerVersion,
  };
}

export function versionAt(
  log: FakeLog,
  content: FakeContent,
  moment: Moment,
): { readonly lsn: bigint; readonly content: FakeContent } {
  const text = moment.kind === 'time' ? moment.at : moment.lsn;
  const [first] = log.versions;
  if (first === undefined) throw new NoSuchMomentError('the branch has no history');
  catchUp(log, content);
  if (moment.kind === 'lsn' && lsnBytes(moment.lsn) > log.lsn) {
    throw new NoSuchMomentError(`the history ends at ${lsnText(log.lsn)}, before ${text}`);
  }
  const reached = ({ micros, lsn }: Pick<Version, 'micros' | 'lsn'>) =>
    moment.kind === 'time' ? micros <= microsOf(moment.at) : lsn <= lsnBytes(moment.lsn);
  const asVersion = ({ at, lsn }: LogPosition) => ({ micros: microsOf(at), lsn: lsnBytes(lsn) });
  const gap = log.gaps.find(({ from, until }) => reached(asVersion(from)) && !reached(asVersion(until)));
  if (gap !== undefined) throw new NoSuchMomentError(`the history has a gap at ${text}`);
  const found = log.versions.findLast(reached);
  if (found === undefined) throw new NoSuchMomentError(`the history begins at ${positionOf(first).at}, after ${text}`);
  return found;
}

/** Tests also change a branch behind the driver's back. */
function catchUp(log: FakeLog, content: FakeContent): void {
  const last = log.versions.at(-1);
  if (last !== undefined && !isSame(last.content, content)) commitTo(log, content);
}

function isSame(a: FakeContent, b: FakeContent): boolean {
  const text = ({ roles, databases, users }: FakeContent) =>
    JSON.stringify([[...roles], [...databases], [...users].map(([name, { position }]) => [name, position])]);
  return text(a) === text(b);
}

function versionOf({ lsn }: FakeLog, { roles, databases, users }: FakeContent): Version {
  const content = { roles: new Map(roles), databases: new Map(databases), users: new Map(users) };
  return { micros: nowMicros(), lsn, content };
}

let lastMicros = 0;

/** Never the same twice. */
function nowMicros(): number {
  lastMicros = Math.max(lastMicros + 1, Math.floor((performance.timeOrigin + performance.now()) * 1_000));
  return lastMicros;
}

function positionOf({ micros, lsn }: Pick<Version, 'micros' | 'lsn'>): LogPosition {
  const fraction = String(micros % 1_000_000).padStart(6, '0');
  return { at: `${new Date(micros / 1_000).toISOString().slice(0, 19)}.${fraction}Z`, lsn: lsnText(lsn) };
}

function microsOf(at: string): number {
  const fraction = /\.(\d{1,6})/.exec(at)?.[1] ?? '';
  return Math.floor(Date.parse(at) / 1_000) * 1_000_000 + Number(fraction.padEnd(6, '0'));
}
