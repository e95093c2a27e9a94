/** The history of a branch on the wire. */
import type { Static } from 'typebox';
import type { KeptHistory } from '../../core/moments.ts';
import type { BranchHistory } from '../schemas/history.ts';
import { present, time } from './common.ts';

export function historyView({ history, window, retentionSeconds }: KeptHistory): Static<typeof BranchHistory> {
  return {
    retention_seconds: retentionSeconds,
    ...(window && { from: time(window.from), until: time(window.until) }),
    ...present({ from_lsn: history?.from?.lsn, until_lsn: history?.until?.lsn }),
    gaps: (history?.gaps ?? []).map(({ from, until }) => ({
      from: time(new Date(from.at)),
      until: time(new Date(until.at)),
      from_lsn: from.lsn,
      until_lsn: until.lsn,
    })),
    base_count: history?.baseCount ?? 0,
    base_bytes: history?.baseBytes ?? 0,
    log_bytes: history?.logBytes ?? 0,
  };
}
