/** API keys of the three kinds: a person's, an organization's, and those of a single project. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, at } from '../api/client.ts';
import type { ApiKey, ApiKeyCreated } from '../api/generated.ts';
import { organizationKeysQuery, organizationsQuery, personalKeysQuery, sessionQuery } from '../api/queries.ts';
import { useConfirm } from '../forms/use-form.ts';
import { Ago, Badge, Card, PageHead, Secret } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog, Dialog } from '../ui/dialog.tsx';
import { Icon } from '../ui/icons.tsx';
import { Empty, Loaded } from '../ui/states.tsx';
import { RowAction, RowActions, Table } from '../ui/table.tsx';
import { CreateKey, scopeNames } from './create-key.tsx';

export function KeysPage() {
  const session = useQuery(sessionQuery).data;
  const organizations = useQuery(organizationsQuery);
  const isPersonal = session?.key?.kind === 'personal';
  const [isCreating, setCreating] = useState(false);
  const [made, setMade] = useState<ApiKeyCreated | null>(null);
  if (session?.key?.kind === 'project') return <Empty title="A key of a single project neither sees nor makes keys." />;
  if (session?.key !== undefined && session.key.scope !== 'full') {
    return <Empty title="A key of limited scope neither sees nor makes keys." />;
  }
  return (
    <>
      <title>API keys · Catnap</title>
      <PageHead title="API keys" lead="A key is shown once, when it is made. Anyone who has it acts as its owner.">
        <Button tone="primary" onClick={() => setCreating(true)}>
          <Icon name="plus" /> New key
        </Button>
      </PageHead>
      <div className="stack">
        {isPersonal && <PersonalKeys />}
        <Loaded query={organizations}>
          {(found) => found.map(({ id, name }) => <OrganizationKeys key={id} orgId={id} name={name} />)}
        </Loaded>
      </div>
      {isCreating && (
        <CreateKey
          isPersonal={isPersonal}
          organizations={organizations.data ?? []}
          onClose={() => setCreating(false)}
          onMade={(key) => {
            setCreating(false);
            setMade(key);
          }}
        />
      )}
      {made !== null && (
        <Dialog title={`The key “${made.name}”`} onClose={() => setMade(null)}>
          <div className="dialog-body">
            <p>Copy it now: it is not shown again.</p>
            <Secret text={made.key} label="the key" />
          </div>
        </Dialog>
      )}
    </>
  );
}

function PersonalKeys() {
  const keys = useQuery(personalKeysQuery);
  return (
    <Card title="Your own">
      <Loaded query={keys}>
        {(found) => <KeyTable keys={found} pathOf={(id) => `/api_keys/${id}`} arePersonal />}
      </Loaded>
    </Card>
  );
}

function OrganizationKeys({ orgId, name }: { readonly orgId: string; readonly name: string }) {
  const keys = useQuery(organizationKeysQuery(orgId));
  return (
    <Card title={`Of the organization ${name}`}>
      <Loaded query={keys}>
        {(found) => <KeyTable keys={found} pathOf={(id) => `${at`/organizations/${orgId}`}/api_keys/${id}`} />}
      </Loaded>
    </Card>
  );
}

interface KeyTableProps {
  readonly keys: readonly ApiKey[];
  readonly pathOf: (id: number) => string;
  readonly arePersonal?: boolean;
}

function KeyTable({ keys, pathOf, arePersonal = false }: KeyTableProps) {
  const [revoking, setRevoking] = useState<ApiKey | null>(null);
  const ownId = useQuery(sessionQuery).data?.key?.id;
  if (keys.length === 0) return <Empty title="No keys." />;
  return (
    <>
      <Table label="Keys" columns={['Name', 'Reaches', 'May do', 'Created', 'Last used', 'Expires']} hasActions>
        {keys.map((key) => (
          <tr key={key.id}>
            <td>
              {key.name} {key.id === ownId && <Badge tone="accent">signed in with it</Badge>}
            </td>
            <td>{key.project_id === undefined ? 'everything' : <code>{key.project_id}</code>}</td>
            <td>{scopeNames[key.scope]}</td>
            <td>
              <Ago at={key.created_at} /> by {key.created_by.name}
            </td>
            <td>{key.last_used_at === null ? 'never' : <Ago at={key.last_used_at} />}</td>
            <td>
              <Expiry at={key.expires_at} />
            </td>
            <RowActions>
              <RowAction onClick={() => setRevoking(key)}>Revoke</RowAction>
            </RowActions>
          </tr>
        ))}
      </Table>
      {revoking !== null && (
        <RevokeKey
          apiKey={revoking}
          isOwn={revoking.id === ownId}
          isLast={arePersonal && revoking.scope === 'full' && keys.filter(makesKeys).length === 1}
          path={pathOf(revoking.id)}
          onClose={() => setRevoking(null)}
        />
      )}
    </>
  );
}

const hasExpired = (at: string | undefined) => at !== undefined && Date.parse(at) <= Date.now();
const makesKeys = (key: ApiKey) => key.scope === 'full' && !hasExpired(key.expires_at);

function Expiry({ at }: { readonly at: string | undefined }) {
  if (at === undefined) return 'never';
  return hasExpired(at) ? <Badge tone="warn">expired</Badge> : new Date(at).toLocaleString();
}

interface RevokeKeyProps {
  readonly apiKey: ApiKey;
  readonly isOwn: boolean;
  /** The last personal key. */
  readonly isLast: boolean;
  readonly path: string;
  readonly onClose: () => void;
}

function RevokeKey({ apiKey, isOwn, isLast, path, onClose }: RevokeKeyProps) {
  const revoke = useConfirm({
    send: () => api<object>('DELETE', path),
    refresh: [['keys'], ['session']],
    done: `The key “${apiKey.name}” no longer works.`,
    onDone: onClose,
  });
  return (
    <ConfirmDialog title="Revoke key" submit="Revoke key" form={revoke} onClose={onClose}>
      <p>
        Programs that use “{apiKey.name}” are refused from now on.
        {isOwn && ' You are signed in with this key, and will be signed out.'}
      </p>
      {isLast && (
        <p>
          This is the last personal key. After it, a new one comes only from <code>catnap keys recover</code>, run on
          the machine by the user who runs Catnap.
        </p>
      )}
    </ConfirmDialog>
  );
}
