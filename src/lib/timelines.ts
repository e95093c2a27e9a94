/**
 * Timelines: a server that was recovered continues its log under a new number, from the position where recovery ended.
 * The file `<timeline>.history` beside the log lists the timelines before it, and where each of them ends.
 */
import { segmentBytes, segmentNumbered } from './log-segments.ts';
import { lsnBytes } from './moments.ts';

export interface EndedTimeline {
  readonly timeline: number;
  readonly end: bigint;
}

const filePattern = /^[0-9A-F]{8}\.history$/;
const linePattern = /^\s*(\d+)\s+([0-9A-Fa-f]{1,8}\/[0-9A-Fa-f]{1,8})\b/;

export const isTimelineFile = (name: string) => filePattern.test(name);

export const timelineFile = (timeline: number) => `${timeline.toString(16).toUpperCase().padStart(8, '0')}.history`;

/** From the text of such a file: the timelines before it, oldest first. */
export function endedTimelines(text: string): EndedTimeline[] {
  return text.split('\n').flatMap((line) => {
    const [, number, end] = linePattern.exec(line) ?? [];
    return number === undefined || end === undefined ? [] : [{ timeline: Number(number), end: lsnBytes(end) }];
  });
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

/** Whether a span can be followed from its first timeline to its last. */
export const isFollowed = ({ timeline, from, lastTimeline, ended }: Omit<LogSpan, 'to'>) =>
  timeline === lastTimeline || ended.some((one) => one.timeline === timeline && from <= one.end);

/** The segments of a log that may change its timeline. The segment of a change begins with what the old one held. */
export function segmentsAcross({ timeline, from, to, lastTimeline, ended }: LogSpan): string[] {
  const changes = ended
    .filter((one) => one.timeline >= timeline)
    .map(({ end }, index, all) => ({ at: end / segmentBytes, to: all[index + 1]?.timeline ?? lastTimeline }));
  const names: string[] = [];
  for (let at = from / segmentBytes; at <= to / segmentBytes; at++) {
    const change = changes.findLast((one) => one.at <= at);
    names.push(segmentNumbered(change?.to ?? timeline, at));
  }
  return names;
}
