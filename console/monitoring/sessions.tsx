/** What a compute does right now: its sessions, for how long, and who waits for whom; with ways to make one stop. */
import { queryOptions, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, at } from '../api/client.ts';
import type { Endpoint, ListProjectEndpointSessionsReply } from '../api/generated.ts';
import { useAction } from '../forms/action.ts';
import { useConfirm } from '../forms/use-form.ts';
import { Badge } from '../ui/bits.tsx';
import { ConfirmDialog } from '../ui/dialog.tsx';
import { CheckField } from '../ui/field.tsx';
import { count, duration } from '../ui/format.ts';
import { Icon } from '../ui/icons.tsx';
import { MenuButton } from '../ui/menu.tsx';
import { Empty, Loaded } from '../ui/states.tsx';
import { RowActions, Table } from '../ui/table.tsx';
import type { Tone } from '../ui/tone.ts';
import { Statement } from './statement.tsx';

type Session = ListProjectEndpointSessionsReply['sessions'][number];

/** Asking wakes nothing and keeps nothing awake, so the page may ask often. */
const everyMs = 2_000;

const pathOf = ({ project_id, id }: Endpoint) => at`/projects/${project_id}/endpoints/${id}/sessions`;

const sessionsQuery = (endpoint: Endpoint) =>
  queryOptions({
    queryKey: ['sessions', endpoint.id],
    queryFn: () => api<ListProjectEndpointSessionsReply>('GET', pathOf(endpoint)),
    refetchInterval: everyMs,
  });

export function Sessions({ endpoint }: { readonly endpoint: Endpoint }) {
  const sessions = useQuery(sessionsQuery(endpoint));
  const [withIdle, setWithIdle] = useState(false);
  return (
    <Loaded query={sessions}>
      {(found) => {
        const shown = found.sessions.filter(
          (session) => withIdle || session.state !== 'idle' || isBlocking(session, found),
        );
        const waiting = found.sessions.filter(({ blocked_by }) => blocked_by.length > 0).length;
        return (
          <>
            <div className="view-bar">
              <p className="hint" role="status">
                {count(found.sessions.length, 'session')}
                {waiting > 0 && `, ${waiting} waiting for a lock`}. Asked every {everyMs / 1000} s; that keeps nothing
                awake.
              </p>
              <CheckField label="Show idle sessions" checked={withIdle} onChange={setWithIdle} />
            </div>
            {shown.length === 0 ? (
              <Empty title={found.is_awake ? 'Nothing runs right now.' : 'The compute is suspended.'}>
                <p>{emptyHint(found, withIdle)}</p>
              </Empty>
            ) : (
              <SessionTable endpoint={endpoint} sessions={shown} reply={found} />
            )}
          </>
        );
      }}
    </Loaded>
  );
}

function emptyHint({ is_awake, sessions }: ListProjectEndpointSessionsReply, withIdle: boolean): string {
  if (!is_awake) return 'It has no sessions until somebody connects.';
  return withIdle || sessions.length === 0 ? 'Nobody is connected.' : 'All sessions are idle.';
}

const isBlocking = ({ pid }: Session, { sessions }: ListProjectEndpointSessionsReply) =>
  sessions.some(({ blocked_by }) => blocked_by.includes(pid));

interface SessionTableProps {
  readonly endpoint: Endpoint;
  readonly sessions: readonly Session[];
  readonly reply: ListProjectEndpointSessionsReply;
}

function SessionTable({ endpoint, sessions, reply }: SessionTableProps) {
  const [ending, setEnding] = useState<Session | null>(null);
  const cancel = useAction(({ id }: Session) => api<object>('POST', `${pathOf(endpoint)}/${id}/cancel`), {
    refresh: [['sessions', endpoint.id]],
    done: 'The statement is cancelled.',
  });
  const now = Date.parse(reply.read_at);
  return (
    <div className="card dense">
      <Table label="Sessions" columns={['Pid', 'State', 'For', 'Who', 'Statement']} numbers={['For']} hasActions>
        {sessions.map((session) => (
          <tr key={session.id}>
            <td className="pid">
              <code>{session.pid}</code>
            </td>
            <td>
              <Badge tone={toneOf(session)}>{stateOf(session)}</Badge>
            </td>
            <td className="number">{secondsText(sinceOf(session), now)}</td>
            <td className="who">
              {session.role ?? session.kind}
              <span className="hint">{[session.database, session.application_name].filter(Boolean).join(' · ')}</span>
            </td>
            <td className="statement-cell">
              {session.query !== undefined && <Statement text={session.query} />}
              <Waits session={session} reply={reply} now={now} />
            </td>
            <RowActions>
              <MenuButton
                small
                tone="quiet"
                menu={`Session ${session.pid}`}
                aria-label={`Actions of session ${session.pid}`}
                items={[
                  {
                    label: 'Cancel statement',
                    isDisabled: session.state !== 'active',
                    onSelect: () => cancel.mutate(session),
                  },
                  { label: 'Terminate session', isApart: true, isBad: true, onSelect: () => setEnding(session) },
                ]}
              >
                <Icon name="more" />
              </MenuButton>
            </RowActions>
          </tr>
        ))}
      </Table>
      {ending !== null && <Terminate endpoint={endpoint} session={ending} onClose={() => setEnding(null)} />}
    </div>
  );
}

/** Whom a session waits for, and how many wait for it. */
function Waits({
  session,
  reply,
  now,
}: {
  readonly session: Session;
  readonly reply: SessionTableProps['reply'];
  readonly now: number;
}) {
  const behind = reply.sessions.filter(({ blocked_by }) => blocked_by.includes(session.pid)).length;
  if (session.blocked_by.length === 0 && behind === 0) return null;
  const whom = session.blocked_by.map((pid) => {
    const other = reply.sessions.find((one) => one.pid === pid);
    return pid === 0 ? 'a prepared transaction' : other?.role === undefined ? `${pid}` : `${pid} (${other.role})`;
  });
  return (
    <p className="waits">
      {whom.length > 0 && (
        <span className="warn">
          Waits for {whom.join(', ')}
          {session.waiting_since !== undefined && `, for ${secondsText(session.waiting_since, now)}`}
          {session.lock !== undefined && `: ${session.lock}`}
        </span>
      )}
      {behind > 0 && <Badge tone="bad">blocks {count(behind, 'session')}</Badge>}
    </p>
  );
}

function stateOf({ state, kind, blocked_by }: Session): string {
  if (blocked_by.length > 0) return 'waiting';
  return state ?? (kind === 'client backend' ? 'unknown' : 'working');
}

function toneOf({ state, blocked_by }: Session): Tone {
  if (blocked_by.length > 0) return 'warn';
  if (state === 'active') return 'good';
  return state?.startsWith('idle in transaction') ? 'warn' : 'plain';
}

/** A statement that runs, else how long the session has been as it is. */
const sinceOf = ({ state, query_started_at, state_changed_at, started_at }: Session) =>
  (state === 'active' ? query_started_at : state_changed_at) ?? started_at;

function secondsText(iso: string, now: number): string {
  const seconds = Math.max(0, (now - Date.parse(iso)) / 1000);
  return seconds < 10 ? `${seconds.toFixed(1)} s` : duration(seconds);
}

interface TerminateProps {
  readonly endpoint: Endpoint;
  readonly session: Session;
  readonly onClose: () => void;
}

function Terminate({ endpoint, session, onClose }: TerminateProps) {
  const end = useConfirm({
    send: () => api<object>('POST', `${pathOf(endpoint)}/${session.id}/terminate`),
    refresh: [['sessions', endpoint.id]],
    done: `Session ${session.pid} is terminated.`,
    onDone: onClose,
  });
  return (
    <ConfirmDialog title={`Terminate session ${session.pid}`} submit="Terminate" form={end} onClose={onClose}>
      <p>The connection of {session.role ?? session.kind} is closed, and its transaction is rolled back.</p>
      {session.query !== undefined && <pre className="code-block wrapped">{session.query}</pre>}
    </ConfirmDialog>
  );
}
