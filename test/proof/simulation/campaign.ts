/** Many schedules, several at a time, each on a ground of its own; what they find is shortened and told. */
import { Ground } from './ground.ts';
import { quickenTimers } from './quick-timers.ts';
import { describeMoves, type PlayOptions, playSeed, shrink } from './schedule.ts';
import type { Counts } from './world.ts';

export interface CampaignOptions extends PlayOptions {
  readonly seed: number;
  readonly count: number;
  readonly minutes?: number | null;
  /** How many schedules are played at a time. */
  readonly grounds: number;
  /** Also as soon as something was found. */
  readonly stopAtFirst?: boolean;
  /** Hears how far it is, now and then. */
  readonly say?: (text: string) => void;
}

export interface Finding {
  readonly violation: string;
  readonly seed: number;
  /** How many schedules have found the same. */
  times: number;
  /** The shortest reproduction. */
  text: string;
}

export interface Campaign {
  readonly schedules: number;
  readonly counts: Counts;
  /** How often operations of each job ended in which way. */
  readonly endings: ReadonlyMap<string, Readonly<Record<string, number>>>;
  readonly findings: readonly Finding[];
}

const sayEveryMs = 10_000;

/** Far apart, so that campaigns with neighbouring seeds have no schedule in common. */
export const seedOf = (seed: number, index: number) => (Math.imul(seed, 0x85ebca6b) + index) >>> 0;

export async function runCampaign(options: CampaignOptions): Promise<Campaign> {
  const { seed, count, minutes = null, say } = options;
  const endsAt = minutes === null ? Number.POSITIVE_INFINITY : performance.now() + minutes * 60_000;
  const findings: Finding[] = [];
  const counts: Counts = { moves: 0, faults: 0, crashes: 0, stalls: 0, commands: 0, refusals: 0, operations: 0 };
  const endings = new Map<string, Record<string, number>>();
  let begun = 0;
  let ended = 0;
  let saidAt = performance.now();

  const playAll = async (ground: Ground) => {
    while (begun < count && performance.now() < endsAt && !(options.stopAtFirst && findings.length > 0)) {
      const own = seedOf(seed, begun++);
      const played = await playSeed(ground, own, options).catch((error: unknown) => {
        throw new Error(`schedule ${own} could not be played`, { cause: error });
      });
      ended++;
      for (const name of Object.keys(counts) as (keyof Counts)[]) counts[name] += played.counts[name];
      for (const { job, status } of played.endings) {
        const known = endings.get(job) ?? {};
        endings.set(job, { ...known, [status]: (known[status] ?? 0) + 1 });
      }
      for (const violation of played.violations) {
        const known = findings.find((finding) => finding.violation === violation);
        if (known !== undefined) known.times++;
        else await explain(ground, own, violation, played.moves);
      }
      if (performance.now() - saidAt < sayEveryMs) continue;
      saidAt = performance.now();
      say?.(`${ended} schedules, ${counts.operations} operations, ${counts.faults + counts.crashes} faults`);
    }
  };

  const explain = async (ground: Ground, own: number, violation: string, moves: readonly string[]) => {
    const finding: Finding = { violation, seed: own, times: 1, text: '' };
    findings.push(finding);
    finding.text = describeMoves(await shrink(ground, moves, violation, options), violation);
    say?.(`schedule ${own}: ${finding.text}`);
  };

  const slowDown = quickenTimers();
  const grounds: Ground[] = [];
  try {
    for (let index = 0; index < options.grounds; index++) grounds.push(await Ground.open());
    await Promise.all(grounds.map(playAll));
  } finally {
    for (const ground of grounds) await ground.close();
    slowDown();
  }
  return { schedules: ended, counts, endings, findings };
}
