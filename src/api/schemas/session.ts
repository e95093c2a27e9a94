/** The sessions of a compute. */
import { Type } from 'typebox';
import { idOf, ref, time } from './common.ts';

const sessionId = Type.String({
  pattern: '^[0-9a-f]{1,16}\\.[0-9a-f]{1,8}$',
  description: 'Id of the session: when it began and its pid, as Postgres writes it for `%c` in a log.',
});

export const Session = Type.Object(
  {
    id: sessionId,
    pid: Type.Integer({ description: 'Process id, as in `pg_stat_activity`.' }),
    kind: Type.String({ description: 'Kind of the process: `client backend`, `autovacuum worker` and others.' }),
    role: Type.Optional(Type.String({ description: 'The role that has logged in.' })),
    database: Type.Optional(Type.String({ description: 'The database that it is in.' })),
    application_name: Type.Optional(Type.String({ description: 'What the client calls itself.' })),
    state: Type.Optional(Type.String({ description: '`active`, `idle`, `idle in transaction` and others.' })),
    started_at: time('When it began.'),
    transaction_started_at: Type.Optional(time('When its transaction began; absent outside one.')),
    query_started_at: Type.Optional(time('When the statement began that runs, or ran last.')),
    state_changed_at: Type.Optional(time('Since when it has its state.')),
    query: Type.Optional(Type.String({ description: 'The statement that runs, or ran last, as far as it is kept.' })),
    wait: Type.Optional(Type.String({ description: 'What it waits for, such as `Lock: transactionid`.' })),
    blocked_by: Type.Array(Type.Integer(), {
      description: 'Pids of those that it waits for; 0 is a prepared transaction.',
    }),
    lock: Type.Optional(
      Type.String({ description: 'The lock that it waits for, such as `ShareLock on transactionid`.' }),
    ),
    waiting_since: Type.Optional(time('Since when it waits for the lock.')),
    leader_pid: Type.Optional(Type.Integer({ description: 'Of a parallel worker: the session that it works for.' })),
  },
  { $id: 'Session', description: 'A session of a compute’s server. An addition of Catnap’s.' },
);

export const SessionParams = Type.Object({
  project_id: idOf('project'),
  endpoint_id: idOf('endpoint'),
  session_id: sessionId,
});

export const SessionsReply = Type.Object({
  is_awake: Type.Boolean({ description: 'Whether the compute runs; asleep it has no sessions.' }),
  read_at: time('When it was asked, for durations.'),
  sessions: Type.Array(ref(Session), {
    description: 'Those that do something first, the longest at the top; at most 500.',
  }),
});

export const SessionSignalReply = Type.Object({});
