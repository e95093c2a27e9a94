/** The latest operations, short: what, when, and a moving line while it runs. */
import { Link } from '@tanstack/react-router';
import type { Operation } from '../api/generated.ts';
import { Ago } from '../ui/bits.tsx';
import { milliseconds } from '../ui/format.ts';
import { Empty } from '../ui/states.tsx';
import { OperationTitle, OperationTrouble } from './operation-title.tsx';
import { isOpen, type Named, statusNames } from './words.ts';

interface OperationListProps {
  readonly operations: readonly Operation[];
  readonly projectId: string;
  readonly named: Named;
}

const dots: Readonly<Record<string, string>> = {
  finished: 'active',
  error: 'bad',
  failed: 'pending',
  running: 'pending',
};

export function OperationList({ operations, projectId, named }: OperationListProps) {
  if (operations.length === 0) return <Empty title="Nothing has happened yet." />;
  return (
    <>
      <ul className="activity">
        {operations.map((operation) => (
          <li key={operation.id}>
            <span className={`dot ${dots[operation.status] ?? 'idle'}`} />
            <span>
              <OperationTitle operation={operation} named={named} />
            </span>
            {operation.status === 'running' && <span className="progress" role="progressbar" aria-label="Running" />}
            <OperationTrouble operation={operation} />
            <span className="hint">
              {isOpen(operation) ? statusNames[operation.status] : milliseconds(operation.total_duration_ms)}
              {' · '}
              <Ago at={operation.created_at} />
            </span>
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
