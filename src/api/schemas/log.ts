/** The log of a compute. */
import { Type } from 'typebox';
import { closed } from './common.ts';

const limitMax = 1_000;

export const LogsQuery = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: limitMax, description: 'How many entries, the last ones; 100 by default.' }),
    ),
  },
  closed,
);

const Entry = Type.Object({
  at: Type.Optional(Type.String({ format: 'date-time', description: 'When it was written.' })),
  source: Type.Enum(['server', 'session', 'catnap', 'unknown'], {
    description:
      '`server`: a process of the server that runs nothing of tenants. `session`: any other process; whoever may log ' +
      'in can have chosen its text. `catnap`: Catnap itself. `unknown`: a line that did not come through the log.',
  }),
  process: Type.Optional(Type.String({ description: 'Kind of the process, such as `client backend`.' })),
  pid: Type.Optional(Type.Integer({ description: 'Its process id, as in `pg_stat_activity`.' })),
  level: Type.Optional(Type.String({ description: 'Severity, such as `LOG` or `FATAL`.' })),
  message: Type.String({ description: 'The text, with details and hints on lines of their own.' }),
});

export const LogsReply = Type.Object({
  logs: Type.Array(Entry, { description: 'The newest at the end.' }),
});
