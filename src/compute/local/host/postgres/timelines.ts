/**
 * Timelines: a server that was recovered continues its log under a new number, from the position where recovery ended.
 * The file `<timeline>.history` beside the log lists the timelines before it, and where each of them ends.
 */
import { constants } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { lsnBytes } from '../../../../lib/moments.ts';
import { segmentBytes, segmentName } from './wal-segments.ts';

export interface EndedTimeline {
  readonly timeline: number;
  readonly end: bigint;
}

const filePattern = /^[0-9A-F]{8}\.history$/;
const fileBytesMax = 65_536;
const linePattern = /^\s*(\d+)\s+([0-9A-Fa-f]{1,8}\/[0-9A-Fa-f]{1,8})\b/;

export const isTimelineFile = (name: string) => filePattern.test(name);

const timelineFile = (timeline: number) => `${timeline.toString(16).toUpperCase().padStart(8, '0')}.history`;

/** The timelines before this one, oldest first; none where the folder does not have the file. */
export async function readEndedTimelines(
  folder: string,
  timeline: number,
  owner: number | null = null,
): Promise<EndedTimeline[]> {
  const text = await readTimelineFile(folder, timelineFile(timeline), owner);
  return (text ?? '').split('\n').flatMap((line) => {
    const [, number, end] = linePattern.exec(line) ?? [];
    return number === undefined || end === undefined ? [] : [{ timeline: Number(number), end: lsnBytes(end) }];
  });
}

/** Null where there is none. A folder of a tenant's may hold anything: only a plain file of its `owner` is read. */
export async function readTimelineFile(folder: string, name: string, owner: number | null): Promise<string | null> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(join(folder, name), flags).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (handle === null) return null;
  try {
    const facts = await handle.stat();
    const isOwn = facts.nlink === 1 && facts.uid === (owner ?? facts.uid);
    if (!facts.isFile() || !isOwn || facts.size > fileBytesMax)
      throw new Error(`not a timeline's file of uid ${owner ?? 'its owner'}: ${join(folder, name)}`);
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}

export async function timelineFilesIn(folder: string): Promise<string[]> {
  return (await readdir(folder)).filter(isTimelineFile);
}

export interface LogSpan {
  /** The timeline that it begins on. */
  readonly timeline: number;
  readonly from: bigint;
  /** The segment that holds this position is the last one. */
  readonly to: bigint;
  readonly lastTimeline: number;
  readonly ended: readonly EndedTimeline[];
}

/** The segments of a log that may change its timeline. The segment of a change begins with what the old one held. */
export function segmentsAcross({ timeline, from, to, lastTimeline, ended }: LogSpan): string[] {
  const changes = ended
    .filter((one) => one.timeline >= timeline)
    .map(({ end }, index, all) => ({ at: end / segmentBytes, to: all[index + 1]?.timeline ?? lastTimeline }));
  const names: string[] = [];
  for (let at = from / segmentBytes; at <= to / segmentBytes; at++) {
    const change = changes.findLast((one) => one.at <= at);
    names.push(segmentName(change?.to ?? timeline, Number(at)));
  }
  return names;
}
