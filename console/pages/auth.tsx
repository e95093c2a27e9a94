/** The auth integration of a project (beta): quick start, users, keys, domains, transfer, deletion. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { api, at } from '../api/client.ts';
import type { Branch, NeonAuthIntegration } from '../api/generated.ts';
import { databasesQuery, integrationsQuery } from '../api/queries.ts';
import { useAction } from '../forms/action.ts';
import { useConfirm, useForm } from '../forms/use-form.ts';
import { WithBranch } from '../target/branch-choice.tsx';
import { Badge, Card, CopyableId, PageHead } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { CheckField, SelectField } from '../ui/field.tsx';
import { Loaded } from '../ui/states.tsx';
import { Tabs } from '../ui/tabs.tsx';
import { AuthDomains } from './auth-domains.tsx';
import { AuthKeysDialog, type SdkKeys } from './auth-keys.tsx';
import { AuthOauth } from './auth-oauth.tsx';
import { AuthOutbox } from './auth-outbox.tsx';
import { TransferDialog } from './auth-transfer.tsx';
import { AuthUsers } from './auth-users.tsx';
import type { AuthView } from './auth-view.ts';

export function AuthPage() {
  const { projectId } = useParams({ from: '/projects/$projectId/auth' });
  const integrations = useQuery(integrationsQuery(projectId));
  const [keys, setKeys] = useState<SdkKeys | null>(null);
  return (
    <>
      <title>Auth · Catnap</title>
      <PageHead
        title={
          <>
            Auth <Badge tone="accent">beta</Badge>
          </>
        }
        lead="Sign-up and sign-in for your app. Users are kept in step with the table neon_auth.users_sync of your database."
      />
      <Loaded query={integrations}>
        {([integration]) =>
          integration === undefined ? (
            <WithBranch projectId={projectId} branchId={undefined}>
              {(branch) => <QuickStart branch={branch} onKeys={setKeys} />}
            </WithBranch>
          ) : (
            <Integration projectId={projectId} integration={integration} onKeys={setKeys} />
          )
        }
      </Loaded>
      {keys !== null && <AuthKeysDialog keys={keys} onClose={() => setKeys(null)} />}
    </>
  );
}

function QuickStart({ branch, onKeys }: { readonly branch: Branch; readonly onKeys: (keys: SdkKeys) => void }) {
  const databases = useQuery(databasesQuery(branch.project_id, branch.id)).data ?? [];
  const [chosen, setChosen] = useState('');
  const database = databases.find(({ name }) => name === chosen) ?? databases[0];
  const create = useAction((body: object) => api<SdkKeys>('POST', '/projects/auth/create', { body }), {
    refresh: [['project', branch.project_id]],
    done: 'Auth is set up.',
    onDone: onKeys,
  });
  const submit = () =>
    create.mutate({
      auth_provider: 'stack',
      project_id: branch.project_id,
      branch_id: branch.id,
      database_name: database?.name,
      role_name: database?.owner_name,
    });
  return (
    <div className="narrow">
      <Card title="Quick start">
        <div className="stack">
          <p>
            One click makes a project at the auth provider, the table of users on the branch {branch.name}, and the keys
            for your app. The keys are shown once.
          </p>
          {databases.length > 1 && (
            <SelectField
              label="Database for the users"
              value={database?.name ?? ''}
              choices={databases.map(({ name }) => ({ value: name, text: name }))}
              onChange={setChosen}
            />
          )}
          <div>
            <Button tone="primary" busy={create.isPending} disabled={database === undefined} onClick={submit}>
              Set up auth
            </Button>
          </div>
        </div>
      </Card>
    </div>
  );
}

interface IntegrationProps {
  readonly projectId: string;
  readonly integration: NeonAuthIntegration;
  readonly onKeys: (keys: SdkKeys) => void;
}

const authTabs = [
  { id: 'users', text: 'Users' },
  { id: 'sign-in', text: 'Sign-in' },
  { id: 'keys', text: 'Provider and keys' },
  { id: 'mails', text: 'Mails' },
] as const;

function Integration({ projectId, integration, onKeys }: IntegrationProps) {
  const { view = 'users' } = useSearch({ from: '/projects/$projectId/auth' });
  const navigate = useNavigate({ from: '/projects/$projectId/auth' });
  return (
    <Tabs
      label="Auth"
      tabs={authTabs}
      chosen={view}
      onChoose={(id) => navigate({ search: { view: id === 'users' ? undefined : (id as AuthView) } })}
    >
      <div className="stack">
        {view === 'users' && <AuthUsers projectId={projectId} integration={integration} />}
        {view === 'sign-in' && (
          <>
            <AuthDomains projectId={projectId} />
            <AuthOauth projectId={projectId} baseUrl={integration.base_url ?? ''} />
          </>
        )}
        {view === 'keys' && (
          <>
            <Facts projectId={projectId} integration={integration} onKeys={onKeys} />
            <DeleteIntegration projectId={projectId} />
          </>
        )}
        {view === 'mails' && <AuthOutbox providerProjectId={integration.auth_provider_project_id} />}
      </div>
    </Tabs>
  );
}

function Facts({ projectId, integration, onKeys }: IntegrationProps) {
  const body = { auth_provider: 'stack', project_id: projectId };
  const refresh = [['project', projectId, 'auth']];
  const [isTransferring, setTransferring] = useState(false);
  const [isAsking, setAsking] = useState(false);
  const keys = useConfirm({
    send: () => api<SdkKeys>('POST', '/projects/auth/keys', { body }),
    refresh,
    onDone: (made) => {
      setAsking(false);
      onKeys(made);
    },
  });
  return (
    <Card title="Provider">
      <div className="stack">
        <dl className="facts">
          <dt>Project</dt>
          <dd>
            <CopyableId id={integration.auth_provider_project_id} label="the id at the provider" />
          </dd>
          <dt>Owner</dt>
          <dd>
            {integration.owned_by === 'neon' ? 'Catnap' : 'your own account'}
            {integration.transfer_status === 'initiated' && <span className="soft"> (a transfer has begun)</span>}
          </dd>
          <dt>Database</dt>
          <dd>
            <code>{integration.db_name}</code>
          </dd>
          <dt>Token keys (JWKS)</dt>
          <dd>
            <CopyableId id={integration.jwks_url} label="the JWKS URL" />
          </dd>
        </dl>
        <div className="row">
          <Button onClick={() => setAsking(true)}>New SDK keys</Button>
          {integration.owned_by === 'neon' && <Button onClick={() => setTransferring(true)}>Transfer ownership</Button>}
        </div>
      </div>
      {isAsking && (
        <FormDialog title="New SDK keys" submit="Create keys" form={keys} onClose={() => setAsking(false)}>
          <p>A new pair is made and shown once. Existing keys keep working.</p>
        </FormDialog>
      )}
      {isTransferring && <TransferDialog projectId={projectId} onClose={() => setTransferring(false)} />}
    </Card>
  );
}

function DeleteIntegration({ projectId }: { readonly projectId: string }) {
  const [isAsking, setAsking] = useState(false);
  const form = useForm({
    initial: { withData: false },
    send: ({ withData }) =>
      api<object>('DELETE', at`/projects/${projectId}/auth/integration/stack`, { body: { delete_data: withData } }),
    refresh: [['project', projectId]],
    done: 'The integration is deleted.',
    onDone: () => setAsking(false),
  });
  return (
    <Card title="Delete">
      <div className="stack">
        <p>Users are no longer copied to the database, and the keys stop working with it.</p>
        <div>
          <Button tone="danger" onClick={() => setAsking(true)}>
            Delete integration
          </Button>
        </div>
      </div>
      {isAsking && (
        <FormDialog
          title="Delete integration"
          submit="Delete integration"
          tone="danger"
          form={form}
          onClose={() => setAsking(false)}
        >
          <p>If its data is kept, an integration that is created later takes up the same users again.</p>
          <CheckField
            label="Also delete the users"
            hint="The table of users and the project at the provider. This cannot be undone."
            {...form.check('withData')}
          />
        </FormDialog>
      )}
    </Card>
  );
}
