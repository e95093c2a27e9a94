/** How to connect: branch, compute, database, role, pooled or direct, and a snippet for each client. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Branch } from '../api/generated.ts';
import { connectionUriQuery, databasesQuery, endpointsQuery, rolesQuery } from '../api/queries.ts';
import { CopyButton } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { CheckField, SelectField } from '../ui/field.tsx';
import { Icon } from '../ui/icons.tsx';
import { Empty, Loaded, Loading } from '../ui/states.tsx';
import { hidePassword, snippetsFor } from './snippets.ts';

/** What is chosen, as the address holds it. The password never is in there. */
export interface ConnectSearch {
  /** The branch; the dialog is open while there is one. */
  readonly connect?: string | undefined;
  readonly compute?: string | undefined;
  readonly database?: string | undefined;
  readonly role?: string | undefined;
  readonly pooled?: true | undefined;
  readonly client?: string | undefined;
  /** The dialog that makes a branch is open instead. */
  readonly create?: true | undefined;
}

interface ConnectDialogProps {
  readonly projectId: string;
  readonly branches: readonly Branch[];
  readonly search: ConnectSearch;
  readonly onChange: (search: ConnectSearch) => void;
  readonly onClose: () => void;
}

export function ConnectDialog({ projectId, branches, search, onChange, onClose }: ConnectDialogProps) {
  const branch = branches.find(({ id }) => id === search.connect) ?? branches.find((one) => one.default) ?? branches[0];
  const branchId = branch?.id ?? '';
  return (
    <Dialog title="Connect" onClose={onClose} wide>
      <div className="dialog-body">
        <div className="grid-fields connect">
          <SelectField
            label="Branch"
            value={branchId}
            choices={branches.map(({ id, name }) => ({ value: id, text: name }))}
            onChange={(connect) => onChange({ ...search, connect, compute: undefined })}
          />
          <Choices key={branchId} projectId={projectId} branchId={branchId} search={search} onChange={onChange} />
        </div>
      </div>
    </Dialog>
  );
}

interface ChoicesProps extends Pick<ConnectDialogProps, 'projectId' | 'search' | 'onChange'> {
  readonly branchId: string;
}

/** What can be chosen depends on the branch; a choice that is gone falls back to the first. */
function Choices({ projectId, branchId, search, onChange }: ChoicesProps) {
  const all = {
    endpoints: useQuery(endpointsQuery(projectId)),
    databases: useQuery(databasesQuery(projectId, branchId)),
    roles: useQuery(rolesQuery(projectId, branchId)),
  };
  const isLoading = Object.values(all).some(({ isPending }) => isPending);
  const endpoints = (all.endpoints.data ?? []).filter(({ branch_id }) => branch_id === branchId);
  const databases = all.databases.data ?? [];
  const roles = (all.roles.data ?? []).filter(({ authentication_method }) => authentication_method !== 'no_login');
  const endpointId = (endpoints.find(({ id }) => id === search.compute) ?? endpoints[0])?.id;
  const chosen = databases.find(({ name }) => name === search.database) ?? databases[0];
  const owner = roles.find(({ name }) => name === chosen?.owner_name);
  const roleName = (roles.find(({ name }) => name === search.role) ?? owner)?.name;
  const isPooled = search.pooled === true;
  return (
    <>
      <SelectField
        label="Compute"
        value={endpointId ?? ''}
        choices={endpoints.map(({ id, type }) => ({
          value: id,
          text: `${type === 'read_write' ? 'Primary' : 'Replica'} · ${id}`,
        }))}
        onChange={(compute) => onChange({ ...search, compute })}
      />
      <SelectField
        label="Database"
        value={chosen?.name ?? ''}
        choices={databases.map(({ name }) => ({ value: name, text: name }))}
        onChange={(database) => onChange({ ...search, database })}
      />
      <SelectField
        label="Role"
        value={roleName ?? ''}
        choices={roles.map(({ name }) => ({ value: name, text: name }))}
        onChange={(role) => onChange({ ...search, role })}
      />
      <div className="whole">
        <CheckField
          label="Pooled"
          hint="Many short connections share a few server sessions, which suits serverless functions."
          checked={isPooled}
          onChange={(pooled) => onChange({ ...search, pooled: pooled || undefined })}
        />
      </div>
      <div className="whole">
        {isLoading ? (
          <Loading lines={3} />
        ) : endpointId === undefined ? (
          <Empty title="This branch has no compute: add one to connect." />
        ) : chosen === undefined || roleName === undefined ? (
          <Empty title="This branch has no database whose owner can log in." />
        ) : (
          <Uri
            projectId={projectId}
            of={{ branchId, endpointId, database: chosen.name, role: roleName, pooled: isPooled }}
            client={search.client}
            onClient={(client) => onChange({ ...search, client })}
          />
        )}
      </div>
    </>
  );
}

interface UriProps {
  readonly projectId: string;
  readonly of: Parameters<typeof connectionUriQuery>[1];
  readonly client: string | undefined;
  readonly onClient: (client: string) => void;
}

function Uri({ projectId, of, client, onClient }: UriProps) {
  const uri = useQuery(connectionUriQuery(projectId, of));
  const [isShown, setShown] = useState(false);
  return (
    <Loaded query={uri} lines={3}>
      {(text) => {
        const snippets = snippetsFor(text, location.origin);
        const snippet = snippets.find(({ name }) => name === client) ?? snippets[0];
        const code = snippet?.code ?? text;
        return (
          <div className="stack">
            <fieldset className="segments" aria-label="Client">
              {snippets.map(({ name }) => (
                <button key={name} type="button" aria-pressed={name === snippet?.name} onClick={() => onClient(name)}>
                  {name}
                </button>
              ))}
            </fieldset>
            <div>
              <div className="row snippet-head">
                <span className="hint">{snippet?.file}</span>
                <span className="row">
                  <Button small aria-pressed={isShown} onClick={() => setShown(!isShown)}>
                    <Icon name="eye" /> {isShown ? 'Hide password' : 'Show password'}
                  </Button>
                  <CopyButton text={code} label="Copy the snippet">
                    Copy
                  </CopyButton>
                </span>
              </div>
              {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must reach it. */}
              <pre className="code-block whole-text" tabIndex={0}>
                {isShown ? code : hidePassword(code, text)}
              </pre>
            </div>
          </div>
        );
      }}
    </Loaded>
  );
}
