/** Snapshots on the page of a branch: all of the project, since they outlive their branches, its own first. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Branch, Snapshot } from '../api/generated.ts';
import { scheduleQuery, snapshotsQuery } from '../api/queries.ts';
import { Ago, Badge, Card } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { bytes, fullTime } from '../ui/format.ts';
import { Loaded } from '../ui/states.tsx';
import { RowAction, RowActions, Table } from '../ui/table.tsx';
import { DeleteSnapshot, FinalizeRestore, RestoreSnapshot, TakeSnapshot } from './snapshot-dialogs.tsx';
import { ScheduleDialog, scheduleText } from './snapshot-schedule.tsx';

interface SnapshotsProps {
  readonly branch: Branch;
  readonly branches: readonly Branch[];
}

type Open =
  | { readonly name: 'take' | 'schedule' | 'finalize' }
  | { readonly name: 'restore' | 'delete'; readonly snapshot: Snapshot };

export function Snapshots({ branch, branches }: SnapshotsProps) {
  const [open, setOpen] = useState<Open | null>(null);
  const snapshots = useQuery(snapshotsQuery(branch.project_id));
  const close = () => setOpen(null);
  return (
    <Card title="Snapshots">
      <div className="stack">
        <Unfinalized branch={branch} branches={branches} onFinalize={() => setOpen({ name: 'finalize' })} />
        <div className="row">
          <Button onClick={() => setOpen({ name: 'take' })} disabled={branch.current_state !== 'ready'}>
            Take a snapshot
          </Button>
          <Button onClick={() => setOpen({ name: 'schedule' })}>Schedule</Button>
          <ScheduleLine branch={branch} />
        </div>
        <Loaded query={snapshots}>
          {(found) => <SnapshotTable branch={branch} branches={branches} snapshots={found} onOpen={setOpen} />}
        </Loaded>
      </div>
      {open?.name === 'take' && <TakeSnapshot branch={branch} onClose={close} />}
      {open?.name === 'schedule' && <ScheduleDialog branch={branch} onClose={close} />}
      {open?.name === 'finalize' && <FinalizeRestore branch={branch} branches={branches} onClose={close} />}
      {open?.name === 'restore' && (
        <RestoreSnapshot branch={branch} branches={branches} snapshot={open.snapshot} onClose={close} />
      )}
      {open?.name === 'delete' && <DeleteSnapshot branch={branch} snapshot={open.snapshot} onClose={close} />}
    </Card>
  );
}

function ScheduleLine({ branch }: { readonly branch: Branch }) {
  const { data } = useQuery(scheduleQuery(branch.project_id, branch.id));
  if (data === undefined) return null;
  const next = data.next_at === undefined ? '' : `, the next one at ${fullTime(data.next_at)}`;
  const text = data.schedule.length === 0 ? 'No schedule' : data.schedule.map(scheduleText).join('; ');
  return (
    <span className="soft">
      {text}
      {next}.{data.error !== undefined && ` The last one could not be taken: ${data.error}.`}
    </span>
  );
}

interface UnfinalizedProps extends SnapshotsProps {
  readonly onFinalize: () => void;
}

/** Nothing for a branch that does not wait to replace another one. */
function Unfinalized({ branch, branches, onFinalize }: UnfinalizedProps) {
  const target = branches.find(({ id }) => id === branch.restored_as);
  if (branch.restore_status !== 'restored' || target === undefined) return null;
  return (
    <div className="row">
      <Badge tone="warn">restored</Badge>
      <span>This branch was restored from a snapshot and can take the place of {target.name}.</span>
      <Button tone="primary" onClick={onFinalize} disabled={branch.current_state !== 'ready'}>
        Replace {target.name}
      </Button>
    </div>
  );
}

interface SnapshotTableProps extends SnapshotsProps {
  readonly snapshots: readonly Snapshot[];
  readonly onOpen: (open: Open) => void;
}

function SnapshotTable({ branch, branches, snapshots, onOpen }: SnapshotTableProps) {
  if (snapshots.length === 0) return <p className="hint">There are no snapshots in this project yet.</p>;
  const isOwn = (snapshot: Snapshot) => snapshot.source_branch_id === branch.id;
  const sorted = [...snapshots].sort((a, b) => Number(isOwn(b)) - Number(isOwn(a)));
  const nameOf = (id: string) => branches.find((one) => one.id === id)?.name ?? 'a deleted branch';
  return (
    <Table label="Snapshots" columns={['Name', 'Of', 'Taken', 'Expires', 'Data', 'Not shared']} hasActions>
      {sorted.map((snapshot) => (
        <tr key={snapshot.id}>
          <td>
            {snapshot.name} {!snapshot.manual && <Badge>scheduled</Badge>}
            {snapshot.status === 'creating' && <Badge tone="accent">creating</Badge>}
          </td>
          <td>{nameOf(snapshot.source_branch_id)}</td>
          <td>
            <Ago at={snapshot.timestamp ?? snapshot.created_at} />
          </td>
          <td>{snapshot.expires_at === undefined ? 'never' : <Ago at={snapshot.expires_at} />}</td>
          <td>{snapshot.full_size === undefined ? '' : bytes(snapshot.full_size)}</td>
          <td>{snapshot.diff_size === undefined ? '' : bytes(snapshot.diff_size)}</td>
          <RowActions>
            <RowAction
              aria-label={`Restore ${snapshot.name}`}
              disabled={snapshot.status !== 'ready'}
              onClick={() => onOpen({ name: 'restore', snapshot })}
            >
              Restore
            </RowAction>
            <RowAction aria-label={`Delete ${snapshot.name}`} onClick={() => onOpen({ name: 'delete', snapshot })}>
              Delete
            </RowAction>
          </RowActions>
        </tr>
      ))}
    </Table>
  );
}
