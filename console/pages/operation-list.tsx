/** The latest operations, short: what, when, and a moving line while it runs. */
import { Link } from '@tanstack/react-router';
import type { Operation } from '../api/generated.ts';
import { Ago } from '../ui/bits.tsx';
import { milliseconds } from '../ui/format.ts';
import { Empty } from '../ui/states.tsx';
import { explainAction, explainStatus, isOpen } from './operation-words.ts';

interface OperationListProps {
  readonly operations: readonly Operation[];
  readonly projectId: string;
}

const dots: Readonly<Record<string, string>> = {
  finished: 'active',
  error: 'bad',
  failed: 'pending',
  running: 'pending',
};

export function OperationList({ operations, projectId }: OperationListProps) {
  if (operations.length === 0) return <Empty title="Nothing has happened yet." />;
  return (
    <>
      <ul className="activity">
        {operations.map((operation) => (
          <li key={operation.id}>
            <span className={`dot ${dots[operation.status] ?? 'idle'}`} />
            <span>{explainAction(operation.action)}</span>
            {operation.status === 'running' && <span className="progress" role="progressbar" aria-label="Running" />}
            <span className="hint">
              {isOpen(operation)
                ? operation.status
                : `${operation.status} in ${milliseconds(operation.total_duration_ms)}`}
              {' · '}
              <Ago at={operation.created_at} />
            </span>
            {operation.error !== undefined && (
              <span className="hint">
                {leadOf(operation)} {operation.error}
              </span>
            )}
          </li>
        ))}
      </ul>
      <p className="activity-more">
        <Link to="/projects/$projectId/operations" params={{ projectId }}>
          All operations
        </Link>
      </p>
    </>
  );
}

/** What the reason that follows is a reason for. */
function leadOf({ status, failures_count: failures }: Operation): string {
  if (status === 'failed' || status === 'error') return explainStatus(status);
  return failures > 0 ? 'A try before failed:' : '';
}
