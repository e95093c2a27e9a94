/** Many schedules, several at a time, each on a ground of its own; what they find is shortened and told. */
import { errorText } from '../../../src/lib/errors.ts';
import { addCounts, type Counts, noCounts } from './counts.ts';
import { Ground } from './ground.ts';
import { quickenTimers } from './quick-timers.ts';
import { describeMoves, type Played, playSeed, shrink } from './schedule.ts';
import { type PlayOptions, Stages, schedulesPerStage } from './stage.ts';

export interface CampaignOptions extends PlayOptions {
  readonly seed: number;
  readonly count: number;
  readonly minutes?: number | null;
  /** How many schedules are played at a time. */
  readonly grounds: number;
  /** Ends as soon as something was found. */
  readonly stopAtFirst?: boolean;
  /** Where several processes play one campaign: which of its stages are those of this one. */
  readonly share?: Share;
  /** Hears how far it is, now and then. */
  readonly say?: (text: string) => void;
}

export interface Share {
  readonly index: number;
  readonly of: number;
}

export interface Finding {
  readonly violation: string;
  readonly seed: number;
  /** How many schedules have found the same. */
  times: number;
  /** The shortest reproduction. */
  text: string;
}

interface Place {
  readonly ground: Ground;
  readonly stages: Stages;
}

/** How often operations of each job ended in which way. */
export type Endings = Record<string, Record<string, number>>;

export interface Campaign {
  schedules: number;
  readonly counts: Counts;
  readonly endings: Endings;
  readonly findings: Finding[];
}

export const nothingPlayed = (): Campaign => ({ schedules: 0, counts: noCounts(), endings: {}, findings: [] });

const sayEveryMs = 10_000;

/** Far apart, so that campaigns with neighbouring seeds have no schedule in common. The first one opens a stage. */
export function seedOf(seed: number, index: number): number {
  const first = Math.imul(seed, 0x85ebca6b) >>> 0;
  return (first - (first % schedulesPerStage) + index) >>> 0;
}

export async function runCampaign(options: CampaignOptions): Promise<Campaign> {
  const { seed, count, minutes = null, share = { index: 0, of: 1 }, say } = options;
  const endsAt = minutes === null ? Number.POSITIVE_INFINITY : performance.now() + minutes * 60_000;
  const total = nothingPlayed();
  const { counts, endings, findings } = total;
  let nextStage = share.index;
  let saidAt = performance.now();

  const isOver = () => performance.now() >= endsAt || (options.stopAtFirst === true && findings.length > 0);

  const playAll = async (first: Place) => {
    let place = first;
    while (nextStage * schedulesPerStage < count && !isOver()) {
      const from = nextStage * schedulesPerStage;
      nextStage += share.of;
      for (let index = from; index < Math.min(from + schedulesPerStage, count) && !isOver(); index++) {
        const own = seedOf(seed, index);
        try {
          await playOne(place, own);
        } catch (error) {
          // What it has left under way could hold up the next one.
          place = await openPlace();
          tell({ violation: 'a schedule could not be played', seed: own, times: 1, text: errorText(error) });
        }
      }
    }
  };

  const openPlace = async (): Promise<Place> => {
    const ground = await Ground.open();
    grounds.push(ground);
    return { ground, stages: new Stages(ground, options) };
  };

  const tell = (finding: Finding) => {
    findings.push(finding);
    say?.(`schedule ${finding.seed}: ${finding.text}`);
  };

  const playOne = async ({ ground, stages }: Place, own: number) => {
    const played = await playSeed(stages, own);
    total.schedules++;
    addCounts(counts, played.counts);
    countEndings(endings, played);
    for (const violation of played.violations) {
      const known = findings.find((finding) => finding.violation === violation);
      if (known !== undefined) known.times++;
      else await explain(ground, own, violation, played.moves);
    }
    if (performance.now() - saidAt < sayEveryMs) return;
    saidAt = performance.now();
    say?.(`${total.schedules} schedules, ${counts.operations} operations, ${counts.faults + counts.crashes} faults`);
  };

  const explain = async (ground: Ground, own: number, violation: string, moves: readonly string[]) => {
    const finding: Finding = { violation, seed: own, times: 1, text: violation };
    // Known from now on: others that find the same do not shorten it again.
    findings.push(finding);
    finding.text = describeMoves(await shrink(ground, moves, violation, options), violation);
    say?.(`schedule ${own}: ${finding.text}`);
  };

  const slowDown = quickenTimers();
  const grounds: Ground[] = [];
  try {
    const places: Place[] = [];
    for (let index = 0; index < options.grounds; index++) places.push(await openPlace());
    await Promise.all(places.map(playAll));
  } finally {
    for (const ground of grounds) await ground.close();
    slowDown();
  }
  return total;
}

function countEndings(endings: Endings, played: Played): void {
  for (const { job, status } of played.endings) addEnding(endings, job, status, 1);
}

function addEnding(endings: Endings, job: string, status: string, times: number): void {
  const known = endings[job] ?? {};
  known[status] = (known[status] ?? 0) + times;
  endings[job] = known;
}

/** Of several processes, which may have found the same. */
export function addCampaign(to: Campaign, more: Campaign): void {
  to.schedules += more.schedules;
  addCounts(to.counts, more.counts);
  for (const [job, times] of Object.entries(more.endings)) {
    for (const [status, count] of Object.entries(times)) addEnding(to.endings, job, status, count);
  }
  for (const finding of more.findings) {
    const known = to.findings.find(({ violation }) => violation === finding.violation);
    if (known === undefined) to.findings.push(finding);
    else known.times += finding.times;
  }
}
