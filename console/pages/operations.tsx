/** The log of a project's operations, with failures explained. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import type { Operation } from '../api/generated.ts';
import { operationsQuery } from '../api/queries.ts';
import { Ago, Badge, Card, PageHead } from '../ui/bits.tsx';
import { SelectField } from '../ui/field.tsx';
import { milliseconds } from '../ui/format.ts';
import { Empty, Loaded } from '../ui/states.tsx';
import { Table } from '../ui/table.tsx';
import { explainAction, explainStatus, isOpen, statusTones } from './operation-words.ts';

const shown = 200;

const choices = [
  { value: '', text: 'All' },
  { value: 'open', text: 'Not ended' },
  { value: 'trouble', text: 'Failed' },
] as const;

const filters: Readonly<Record<string, (operation: Operation) => boolean>> = {
  open: isOpen,
  trouble: (operation) => operation.status === 'error' || operation.failures_count > 0,
};

export function OperationsPage() {
  const { projectId } = useParams({ from: '/projects/$projectId/operations' });
  const { status = '' } = useSearch({ from: '/projects/$projectId/operations' });
  const navigate = useNavigate({ from: '/projects/$projectId/operations' });
  const operations = useQuery(operationsQuery(projectId, shown));
  return (
    <>
      <title>Operations · Catnap</title>
      <PageHead
        title="Operations"
        lead={`What was asked for and what became of it: the latest ${shown}, newest first.`}
      />
      <div className="toolbar">
        <SelectField
          label="Show"
          value={status}
          choices={choices}
          onChange={(value) => navigate({ search: { status: value === '' ? undefined : value } })}
        />
      </div>
      <Card>
        <Loaded query={operations} lines={8}>
          {(found) => <OperationTable operations={found.filter(filters[status] ?? (() => true))} />}
        </Loaded>
      </Card>
    </>
  );
}

function OperationTable({ operations }: { readonly operations: readonly Operation[] }) {
  if (operations.length === 0) return <Empty title="There is none of these." />;
  return (
    <Table label="Operations" columns={['What', 'Status', 'On', 'Asked for', 'Took']}>
      {operations.map((operation) => (
        <tr key={operation.id}>
          <td>
            {explainAction(operation.action)}
            {operation.failures_count > 0 && (
              <p className="hint">
                {explainStatus(operation.status)} Failed tries: {operation.failures_count}.{' '}
                {operation.error !== undefined && <code>{operation.error}</code>}
              </p>
            )}
            {operation.failures_count === 0 && operation.error !== undefined && (
              <p className="hint">{operation.error}</p>
            )}
          </td>
          <td>
            <Badge tone={statusTones[operation.status]}>{operation.status}</Badge>
          </td>
          <td>
            <code>{operation.endpoint_id ?? operation.branch_id ?? ''}</code>
          </td>
          <td>
            <Ago at={operation.created_at} />
          </td>
          <td>{isOpen(operation) ? '…' : milliseconds(operation.total_duration_ms)}</td>
        </tr>
      ))}
    </Table>
  );
}
