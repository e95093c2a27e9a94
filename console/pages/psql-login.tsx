/**
 * The page behind the link that psql shows: who waits, and what it gets. The token is behind the #, and goes to the
 * server in the body of a request only.
 */
import { useQuery } from '@tanstack/react-query';
import { useRouterState } from '@tanstack/react-router';
import { useState } from 'react';
import { send } from '../api/client.ts';
import type { Branch, Organization, WaitingLogin } from '../api/generated.ts';
import {
  branchesQuery,
  databasesQuery,
  endpointsQuery,
  organizationsQuery,
  projectsQuery,
  rolesQuery,
  waitingLoginQuery,
} from '../api/queries.ts';
import { useAction } from '../forms/action.ts';
import { useConfirm } from '../forms/use-form.ts';
import { Ago, Card, PageHead } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { SelectField } from '../ui/field.tsx';
import { FailureLine, Form } from '../ui/form.tsx';
import { fullTime } from '../ui/format.ts';
import { Empty, Loaded } from '../ui/states.tsx';

export function PsqlLoginPage() {
  const token = useRouterState({ select: (state) => state.location.hash });
  return (
    <>
      <title>Log in without a password · Catnap</title>
      <PageHead title="Log in without a password" lead="A program waits at the database port for you to let it in." />
      {token === '' ? (
        <Empty title="The link is not complete: open it as psql has printed it." />
      ) : (
        <Login {...{ token }} />
      )}
    </>
  );
}

function Login({ token }: { readonly token: string }) {
  const login = useQuery(waitingLoginQuery(token));
  return (
    <div className="stack narrow">
      <Loaded query={login}>
        {(found) => (
          <>
            <Waiting login={found} />
            {found.state === 'waiting' ? <Answer token={token} login={found} /> : <Answered state={found.state} />}
          </>
        )}
      </Loaded>
    </div>
  );
}

function Waiting({ login }: { readonly login: WaitingLogin }) {
  return (
    <Card title="Who waits">
      <dl className="facts">
        <dt>Address</dt>
        <dd>
          <code>{login.client_address}</code>
        </dd>
        <dt>Connected</dt>
        <dd>
          {fullTime(login.created_at)} (<Ago at={login.created_at} />)
        </dd>
        <dt>Program</dt>
        <dd>{login.application_name === '' ? 'not said' : login.application_name}</dd>
        <dt>Asks for</dt>
        <dd>
          user {login.role_name}, database {login.database_name}
        </dd>
      </dl>
    </Card>
  );
}

const answers = {
  confirmed: ['Confirmed.', 'The program goes on in a moment.'],
  connected: ['You are logged in.', 'Go back to your terminal; this page can be closed.'],
  refused: ['Refused.', 'The program was told so, and its connection is closed.'],
} as const;

function Answered({ state }: { readonly state: keyof typeof answers }) {
  const [title, text] = answers[state];
  return (
    <div role="status">
      <Empty title={title}>{text}</Empty>
    </div>
  );
}

interface AnswerProps {
  readonly token: string;
  readonly login: WaitingLogin;
}

function Answer({ token, login }: AnswerProps) {
  const organizations = useQuery(organizationsQuery);
  const refresh = [['login', token]];
  const refuse = useAction(() => send<WaitingLogin>('POST', '/console/logins/refuse', { body: { token } }), {
    refresh,
  });
  return (
    <Card title="Let it in?">
      <div className="stack">
        <p>
          Only if you have just started this program yourself: whoever sits in front of it gets everything that the role
          may do. Catnap never sends such links.
        </p>
        <Loaded query={organizations}>
          {(found) => (
            <ProjectChoice organizations={found} token={token} login={login}>
              <Button busy={refuse.isPending} onClick={() => refuse.mutate()}>
                Refuse
              </Button>
            </ProjectChoice>
          )}
        </Loaded>
      </div>
    </Card>
  );
}

interface ChoiceProps extends AnswerProps {
  /** The way to say no. */
  readonly children: React.ReactNode;
}

function ProjectChoice({ organizations, children, ...rest }: ChoiceProps & { organizations: readonly Organization[] }) {
  const [orgId, setOrgId] = useState(organizations[0]?.id ?? '');
  const [chosen, setChosen] = useState('');
  const projects = useQuery(projectsQuery(orgId, ''));
  return (
    <Loaded query={projects}>
      {(found) => {
        const projectId = (found.find(({ id }) => id === chosen) ?? found[0])?.id;
        return (
          <>
            {organizations.length > 1 && (
              <SelectField
                label="Organization"
                value={orgId}
                choices={organizations.map(({ id, name }) => ({ value: id, text: name }))}
                onChange={setOrgId}
              />
            )}
            {projectId === undefined ? (
              <Empty title="There is no project to log in to.">{children}</Empty>
            ) : (
              <>
                <SelectField
                  label="Project"
                  value={projectId}
                  choices={found.map(({ id, name }) => ({ value: id, text: name }))}
                  onChange={setChosen}
                />
                <BranchChoice key={projectId} projectId={projectId} {...rest}>
                  {children}
                </BranchChoice>
              </>
            )}
          </>
        );
      }}
    </Loaded>
  );
}

function BranchChoice({ projectId, ...rest }: ChoiceProps & { readonly projectId: string }) {
  const [chosen, setChosen] = useState('');
  const branches = useQuery(branchesQuery(projectId));
  return (
    <Loaded query={branches}>
      {(found) => {
        const branch = found.find(({ id }) => id === chosen) ?? found.find((one) => one.default) ?? found[0];
        if (branch === undefined) return <Empty title="The project has no branch yet." />;
        return (
          <>
            <SelectField
              label="Branch"
              value={branch.id}
              choices={found.map(({ id, name }) => ({ value: id, text: name }))}
              onChange={setChosen}
            />
            <Confirm key={branch.id} branch={branch} {...rest} />
          </>
        );
      }}
    </Loaded>
  );
}

function Confirm({ branch, token, login, children }: ChoiceProps & { readonly branch: Branch }) {
  const { project_id: projectId, id: branchId } = branch;
  const [chosen, setChosen] = useState({ endpoint: '', database: '', role: '' });
  const endpoints = (useQuery(endpointsQuery(projectId)).data ?? []).filter(
    (one) => one.branch_id === branchId && one.passwordless_access,
  );
  const databases = useQuery(databasesQuery(projectId, branchId)).data ?? [];
  const roles = (useQuery(rolesQuery(projectId, branchId)).data ?? []).filter(
    ({ authentication_method }) => authentication_method !== 'no_login',
  );
  const endpoint = endpoints.find(({ id }) => id === chosen.endpoint) ?? endpoints[0];
  const database =
    databases.find(({ name }) => name === chosen.database) ??
    databases.find(({ name }) => name === login.database_name) ??
    databases[0];
  const role =
    roles.find(({ name }) => name === chosen.role) ??
    roles.find(({ name }) => name === login.role_name) ??
    roles.find(({ name }) => name === database?.owner_name);
  const confirm = useConfirm({
    send: () =>
      send<WaitingLogin>('POST', '/console/logins/confirm', {
        body: {
          token,
          project_id: projectId,
          endpoint_id: endpoint?.id,
          role_name: role?.name,
          database_name: database?.name,
        },
      }),
    refresh: [['login', token]],
  });
  if (endpoints.length === 0) {
    return <Empty title="No compute of this branch permits logins without a password.">{children}</Empty>;
  }
  return (
    <Form className="stack" form={confirm} disabled={database === undefined || role === undefined}>
      <SelectField
        label="Compute"
        value={endpoint?.id ?? ''}
        choices={endpoints.map(({ id, type }) => ({
          value: id,
          text: `${type === 'read_write' ? 'Primary' : 'Replica'} · ${id}`,
        }))}
        onChange={(value) => setChosen({ ...chosen, endpoint: value })}
      />
      <SelectField
        label="Database"
        value={database?.name ?? ''}
        choices={databases.map(({ name }) => ({ value: name, text: name }))}
        onChange={(value) => setChosen({ ...chosen, database: value })}
      />
      <SelectField
        label="Role"
        value={role?.name ?? ''}
        choices={roles.map(({ name }) => ({ value: name, text: name }))}
        onChange={(value) => setChosen({ ...chosen, role: value })}
      />
      <FailureLine error={confirm.error} />
      <div className="row">
        <Button type="submit" tone="primary" busy={confirm.isBusy}>
          Let it in
        </Button>
        {children}
      </div>
    </Form>
  );
}
