/** Which entries of a log a person wants to see. */
import type { ListProjectEndpointLogsReply } from '../api/generated.ts';

type Entry = ListProjectEndpointLogsReply['logs'][number];

export interface LogFilter {
  /** All of them must occur. */
  readonly words: string;
  readonly kind: '' | 'bad' | 'session' | 'server';
}

/** Warnings and errors of statements go to the client alone, and are in no log. */
const badLevels: readonly string[] = ['FATAL', 'PANIC'];

export const isBad = ({ level }: Entry) => level !== undefined && badLevels.includes(level);

/** The newest first. */
export function matching(entries: readonly Entry[], { words, kind }: LogFilter): readonly Entry[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return entries
    .filter((entry) => {
      if (kind === 'bad' && !isBad(entry)) return false;
      if ((kind === 'session' || kind === 'server') && entry.source !== kind) return false;
      const text = `${entry.at ?? ''} ${entry.level ?? ''} ${entry.pid ?? ''} ${entry.message}`.toLowerCase();
      return wanted.every((word) => text.includes(word));
    })
    .toReversed();
}
