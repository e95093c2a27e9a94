/** The log of a project's operations, with failures explained. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import type { Operation } from '../api/generated.ts';
import { operationsQuery } from '../api/queries.ts';
import { OperationTitle, OperationTrouble } from '../operations/operation-title.tsx';
import { useNamed } from '../operations/use-named.ts';
import { isOpen, type Named, statusNames, statusTones } from '../operations/words.ts';
import { Ago, Badge, Card, PageHead } from '../ui/bits.tsx';
import { SelectField } from '../ui/field.tsx';
import { milliseconds } from '../ui/format.ts';
import { Empty, Loaded } from '../ui/states.tsx';
import { Table } from '../ui/table.tsx';

const shown = 200;

const choices = [
  { value: '', text: 'All' },
  { value: 'open', text: 'In progress' },
  { value: 'failed', text: 'Failed' },
] as const;

const filters: Readonly<Record<string, (operation: Operation) => boolean>> = {
  open: isOpen,
  failed: (operation) => operation.status === 'error' || operation.failures_count > 0,
};

export function OperationsPage() {
  const { projectId } = useParams({ from: '/projects/$projectId/operations' });
  const { status = '' } = useSearch({ from: '/projects/$projectId/operations' });
  const navigate = useNavigate({ from: '/projects/$projectId/operations' });
  const operations = useQuery(operationsQuery(projectId, shown));
  const named = useNamed(projectId);
  return (
    <>
      <title>Operations · Catnap</title>
      <PageHead title="Operations" lead={`What was asked for, and how it went. The latest ${shown}, newest first.`} />
      <div className="toolbar">
        <SelectField
          label="Show"
          value={status}
          choices={choices}
          onChange={(value) =>
            navigate({ search: { status: value === 'open' || value === 'failed' ? value : undefined } })
          }
        />
      </div>
      <Card>
        <Loaded query={operations} lines={8}>
          {(found) => <OperationTable operations={found.filter(filters[status] ?? (() => true))} named={named} />}
        </Loaded>
      </Card>
    </>
  );
}

interface OperationTableProps {
  readonly operations: readonly Operation[];
  readonly named: Named;
}

function OperationTable({ operations, named }: OperationTableProps) {
  if (operations.length === 0) return <Empty title="No operations with this status." />;
  return (
    <Table label="Operations" columns={['What', 'Status', 'When', 'Took']} numbers={['Took']}>
      {operations.map((operation) => (
        <tr key={operation.id}>
          <td>
            <OperationTitle operation={operation} named={named} />
            <OperationTrouble operation={operation} />
          </td>
          <td>
            <Badge tone={statusTones[operation.status]}>{statusNames[operation.status]}</Badge>
          </td>
          <td>
            <Ago at={operation.created_at} />
          </td>
          <td className="number">{isOpen(operation) ? '…' : milliseconds(operation.total_duration_ms)}</td>
        </tr>
      ))}
    </Table>
  );
}
