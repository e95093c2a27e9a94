/** What was deleted and can still be recovered: brought back, or removed for good. */
import { useQuery } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { api, at } from '../api/client.ts';
import type { DeletedThing } from '../api/generated.ts';
import { deletedQuery } from '../api/queries.ts';
import { useAction } from '../forms/action.ts';
import { useConfirm } from '../forms/use-form.ts';
import { Ago, Badge, Card, PageHead } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/dialog.tsx';
import { bytes } from '../ui/format.ts';
import { Empty, Loaded } from '../ui/states.tsx';
import { RowAction, RowActions, Table } from '../ui/table.tsx';

export function DeletedPage() {
  const deleted = useQuery(deletedQuery);
  const { project } = useSearch({ from: '/deleted' });
  return (
    <>
      <title>Deleted · Catnap</title>
      <PageHead
        title="Deleted"
        lead="Deleted projects and branches keep their data for some days, and can be recovered until then."
      />
      <Loaded query={deleted}>
        {(found) => (
          <>
            {project !== undefined && (
              <p className="toolbar">
                <span>Of one project.</span>
                <Link to="/deleted">Everything that was deleted</Link>
              </p>
            )}
            <DeletedTable things={found.filter(({ project_id }) => project === undefined || project_id === project)} />
          </>
        )}
      </Loaded>
    </>
  );
}

function DeletedTable({ things }: { readonly things: readonly DeletedThing[] }) {
  const [purging, setPurging] = useState<DeletedThing | null>(null);
  if (things.length === 0) return <Empty title="Nothing that was deleted can be recovered." />;
  return (
    <Card title="Can be recovered">
      <Table label="Deleted" columns={['Name', 'Kind', 'Data', 'Deleted', 'Removed for good']} hasActions>
        {things.map((thing) => (
          <Row key={pathOf(thing)} thing={thing} onPurge={() => setPurging(thing)} />
        ))}
      </Table>
      {purging !== null && <Purge thing={purging} onClose={() => setPurging(null)} />}
    </Card>
  );
}

function Row({ thing, onPurge }: { readonly thing: DeletedThing; readonly onPurge: () => void }) {
  return (
    <tr>
      <td>
        {thing.name} {thing.deletion_method === 'ttl' && <Badge>expired</Badge>}
      </td>
      <td>{thing.kind === 'project' ? 'project' : `branch of ${thing.project_name}`}</td>
      <td>{thing.logical_size === undefined ? 'not measured' : bytes(thing.logical_size)}</td>
      <td>
        <Ago at={thing.deleted_at} />
      </td>
      <td>
        <Ago at={thing.recoverable_until} />
      </td>
      <RowActions>
        <RecoverButton thing={thing} />
        <RowAction aria-label={`Purge ${thing.name}`} onClick={onPurge}>
          Purge
        </RowAction>
      </RowActions>
    </tr>
  );
}

export function RecoverButton({ thing }: { readonly thing: DeletedThing }) {
  const recover = useAction(() => api<object>('POST', `${pathOf(thing)}/recover`), {
    refresh,
    done: `${titleOf(thing)} is back, with everything it had.`,
  });
  return (
    <Button
      small
      aria-label={`Recover ${thing.name}`}
      busy={recover.isPending}
      onClick={() => recover.mutate(undefined)}
    >
      Recover
    </Button>
  );
}

function Purge({ thing, onClose }: { readonly thing: DeletedThing; readonly onClose: () => void }) {
  const purge = useConfirm({
    send: () => api<object>('POST', `${pathOf(thing)}/purge`),
    refresh,
    done: `${titleOf(thing)} is removed for good.`,
    onDone: onClose,
  });
  return (
    <ConfirmDialog title={`Purge ${thing.kind}`} submit="Purge" typed={thing.name} form={purge} onClose={onClose}>
      <p>All its data is removed now, and its space becomes free. This cannot be undone.</p>
    </ConfirmDialog>
  );
}

const refresh = [['deleted'], ['projects'], ['project']];

function pathOf({ project_id: project, branch_id: branch }: DeletedThing): string {
  return branch === undefined ? at`/projects/${project}` : at`/projects/${project}/branches/${branch}`;
}

const titleOf = ({ kind, name }: DeletedThing) => `${kind === 'project' ? 'Project' : 'Branch'} ${name}`;
