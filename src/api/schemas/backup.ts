/** What is off the machine, for the operator. */
import { Type } from 'typebox';
import { count, time } from './common.ts';

const nullableTime = (description: string) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time', description });
const nullableText = (description: string) => Type.Unsafe<string | null>({ type: ['string', 'null'], description });
const nullableCount = (description: string) => Type.Unsafe<number | null>({ type: ['integer', 'null'], description });

const HistoryBackup = Type.Object({
  history_id: Type.String({ description: 'Names the history in the store.' }),
  project_id: Type.String({ description: 'Its project, or `system` for the system database.' }),
  project_name: nullableText('Null where the project is gone, and for the system database.'),
  branch_id: Type.String({ description: 'The branch whose past it is, or that the snapshot was taken of.' }),
  branch_name: nullableText('Null where the branch is gone, and for the system database.'),
  snapshot_id: nullableText('The snapshot whose data it is; null for the past of a branch.'),
  snapshot_name: nullableText('Null where the snapshot is gone, and for the past of a branch.'),
  stored_from: nullableTime('The first moment that the store can give; null while it can give none.'),
  stored_until: nullableTime('The last moment that the store can give.'),
  stored_lsn: nullableText('Where the log of the store ends.'),
  behind_seconds: nullableCount(
    'For how long the machine has had log that the store lacks, 0 if it lacks none; null without a moment to compare.',
  ),
  waiting_bytes: count('Log and base images that are not uploaded yet.'),
  stored_bytes: count('What the store keeps of it, compressed and encrypted.'),
  base_count: count('Base images in the store.'),
  gap_count: count('Spans of time that were lost before they could be uploaded.'),
  problem: nullableText('Why it cannot be uploaded at the moment.'),
  gone_since: nullableTime('Since when only the store has it; a week later the store drops it.'),
});

export const BackupReply = Type.Object({
  state: Type.Enum(['off', 'ok', 'behind', 'failing'], {
    description: '`off` without CATNAP_BACKUP_URL; `failing` while nothing can be uploaded.',
  }),
  alerts: Type.Array(Type.String(), { description: 'What the operator must know, the most urgent first.' }),
  url: nullableText('The store.'),
  reported_at: nullableTime('When the uploader last said how it fares.'),
  succeeded_at: nullableTime('When everything that it tried last succeeded.'),
  failing_since: nullableTime('Since when uploads fail.'),
  waiting_bytes: count('What is not uploaded yet, of all branches.'),
  stored_bytes: count('What the store keeps.'),
  verified_at: nullableTime('When a restore was last tried out.'),
  verified_ok: Type.Unsafe<boolean | null>({ type: ['boolean', 'null'], description: 'Whether everything was right.' }),
  verification: nullableText('What was checked and found.'),
  histories: Type.Array(HistoryBackup, {
    description: 'Each branch’s past, each snapshot, and the system database’s past.',
  }),
  read_at: time('When this was read.'),
});
