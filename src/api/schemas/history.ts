/** What is kept of a branch’s past. */
import { Type } from 'typebox';
import { count, ref, time } from './common.ts';

const position = (description: string) => Type.String({ description });

export const BranchHistory = Type.Object(
  {
    retention_seconds: count('history_retention_seconds of the project.'),
    from: Type.Optional(time('The first moment that can be given, those of its ancestors included.')),
    until: Type.Optional(time('Up to here everything is kept; what was written since follows within a minute.')),
    from_lsn: Type.Optional(position('The first position in the branch’s own log that can be given.')),
    until_lsn: Type.Optional(position('The last one.')),
    gaps: Type.Array(
      Type.Object({
        from: time('Begin.'),
        until: time('End.'),
        from_lsn: position('Begin, as a position in the log.'),
        until_lsn: position('End, as a position in the log.'),
      }),
      { description: 'Spans in between that are lost and cannot be given.' },
    ),
    base_count: count('Base images.'),
    base_bytes: count('What base images take beyond the blocks that they share.'),
    log_bytes: count('What the write-ahead log between them takes.'),
  },
  { $id: 'BranchHistory', description: 'What is kept of a branch’s past. An addition of Catnap.' },
);

export const BranchHistoryReply = Type.Object({ history: ref(BranchHistory) });
