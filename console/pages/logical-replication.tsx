/** Logical replication: the switch of a project, which only goes one way, and the slots of a branch. */
import { useState } from 'react';
import { api, at } from '../api/client.ts';
import type { Branch, Project } from '../api/generated.ts';
import { useConfirm } from '../forms/use-form.ts';
import { Badge, Card } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/dialog.tsx';
import { bytes } from '../ui/format.ts';
import { Table } from '../ui/table.tsx';

export function LogicalReplication({ project }: { readonly project: Project }) {
  const [isAsking, setAsking] = useState(false);
  const isOn = project.settings?.enable_logical_replication === true;
  const turnOn = useConfirm({
    send: () =>
      api<object>('PATCH', at`/projects/${project.id}`, {
        body: { project: { settings: { enable_logical_replication: true } } },
      }),
    refresh: [['project', project.id]],
    done: 'Logical replication is on.',
    onDone: () => setAsking(false),
  });
  return (
    <Card title="Logical replication">
      <div className="stack">
        <p>
          Publish changes to other servers, and subscribe to theirs. {isOn && <Badge tone="good">on</Badge>}
          {!isOn && <Badge>off</Badge>}
        </p>
        {!isOn && (
          <div>
            <Button onClick={() => setAsking(true)}>Turn on logical replication</Button>
          </div>
        )}
        {isOn && <p className="hint">It cannot be turned off again.</p>}
      </div>
      {isAsking && (
        <ConfirmDialog title="Logical replication" submit="Turn on" form={turnOn} onClose={() => setAsking(false)}>
          <p>Computes that are awake are restarted, which ends their sessions. It cannot be turned off again.</p>
        </ConfirmDialog>
      )}
    </Card>
  );
}

/** Nothing for a branch without slots. */
export function ReplicationSlots({ branch }: { readonly branch: Branch }) {
  const slots = branch.replication_slots ?? [];
  if (slots.length === 0) return null;
  const isAnyLost = slots.some(({ wal_status }) => wal_status === 'lost');
  return (
    <Card title="Replication slots">
      <Table label="Replication slots" columns={['Name', 'Database', 'Plugin', 'State', 'Retained']}>
        {slots.map(({ name, database, plugin, active, wal_status, retained_bytes }) => (
          <tr key={name}>
            <td>
              <code>{name}</code>
            </td>
            <td>
              <code>{database}</code>
            </td>
            <td>{plugin}</td>
            <td>
              {wal_status === 'lost' ? (
                <Badge tone="bad">lost</Badge>
              ) : (
                <Badge tone={active ? 'good' : 'plain'}>{active ? 'active' : 'inactive'}</Badge>
              )}
            </td>
            <td>{retained_bytes === undefined ? '' : bytes(retained_bytes)}</td>
          </tr>
        ))}
      </Table>
      {isAnyLost && (
        <p className="hint">
          The server no longer has the changes that a lost slot needs: drop the slot, and set its subscriber up again.
        </p>
      )}
    </Card>
  );
}
