/** Decides which of the extensions that were found are offered to owners, and gives the reason for each other one. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { machineExtensions, whyWithheld, withheldExtensions } from './extension-list.ts';
import { whyNotLoadable } from './library-check.ts';
import type { FoundExtension } from './machine-extensions.ts';

export interface Verdict {
  readonly name: string;
  /** Null for one that has gone from the machine. */
  readonly found: FoundExtension | null;
  /** Why it is not offered; null where it is. */
  readonly reason: string | null;
  /** It is on the list, or was offered before: people may ask for it, and are answered in the database, too. */
  readonly isWanted: boolean;
}

export interface Bench {
  /** The Postgres that would load it. */
  readonly program: string;
  /** What that Postgres offers by itself. */
  readonly ownNames: readonly string[];
  /** What the operator adds. */
  readonly allowed: readonly string[];
  /** What was offered here at some time. */
  readonly known: readonly string[];
}

export async function judgeExtensions(found: readonly FoundExtension[], bench: Bench): Promise<Verdict[]> {
  const verdicts = await Promise.all(found.map((one) => judge(one, bench)));
  const here = new Set([...found.map(({ name }) => name), ...bench.ownNames]);
  const gone = bench.known.filter((name) => !here.has(name)).map(goneVerdict);
  return withoutUnmet([...verdicts, ...gone], bench.ownNames);
}

async function judge(found: FoundExtension, { program, allowed, known }: Bench): Promise<Verdict> {
  const { name, scripts, libraries, folders } = found;
  const isOnList = allowed.includes(name) || name in machineExtensions || isHarmless(found);
  // Databases may have one that the operator does not allow any more.
  if (!isOnList) return { name, found, reason: whyWithheld(name), isWanted: known.includes(name) };
  return { name, found, reason: await problemOf(), isWanted: true };

  async function problemOf(): Promise<string | null> {
    if (scripts.length === 0) return `there is no script of it in ${folders.scripts}`;
    const missing = libraries.find((file) => !existsSync(join(folders.libraries, file)));
    if (missing !== undefined) return `its library ${missing} is not in ${folders.libraries}`;
    const reasons = await Promise.all(libraries.map((file) => whyNotLoadable(program, join(folders.libraries, file))));
    return reasons.find((reason) => reason !== null) ?? null;
  }
}

/** Its script runs as the owner who creates it, and only a superuser's could create functions in C. */
const isHarmless = ({ needsNoSuperuser, scripts, name }: FoundExtension) =>
  needsNoSuperuser && scripts.length > 0 && !(name in withheldExtensions);

function goneVerdict(name: string): Verdict {
  const reason =
    'it was here before, and its package has gone from this machine: databases that have it fail with ' +
    '"could not access file" until it is installed again';
  return { name, found: null, reason, isWanted: true };
}

/** One that needs another one is offered with it only; that may take the ground from a third one. */
function withoutUnmet(verdicts: readonly Verdict[], ownNames: readonly string[]): Verdict[] {
  const offered = new Set([...ownNames, ...verdicts.flatMap(({ name, reason }) => (reason === null ? [name] : []))]);
  const judged = verdicts.map((verdict) => {
    const unmet = verdict.reason === null && verdict.found?.requires.find((name) => !offered.has(name));
    return unmet ? { ...verdict, reason: `it needs the extension ${unmet}, which is not offered` } : verdict;
  });
  const isSettled = judged.every((verdict, index) => verdict === verdicts[index]);
  return isSettled ? judged : withoutUnmet(judged, ownNames);
}
