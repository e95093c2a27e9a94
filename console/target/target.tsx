/** The database that a page works on: branch and database from the address, and its owner's connection string. */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Branch, Endpoint } from '../api/generated.ts';
import { connectionUriQuery, databasesQuery, endpointsQuery } from '../api/queries.ts';
import { SelectField } from '../ui/field.tsx';
import { Empty, Loaded } from '../ui/states.tsx';
import { BranchSelect, WithBranch } from './branch-choice.tsx';

export interface TargetSearch {
  readonly branch?: string | undefined;
  readonly database?: string | undefined;
}

export interface Target {
  readonly branch: Branch;
  readonly database: string;
  readonly uri: string;
  /** The primary compute, which runs the SQL. */
  readonly endpoint: Endpoint;
}

interface WithTargetProps {
  /** Of the page. The choices stand beside it, to leave the room to the data. */
  readonly title: string;
  readonly projectId: string;
  readonly search: TargetSearch;
  readonly onChange: (search: TargetSearch) => void;
  readonly children: (target: Target) => ReactNode;
}

export function WithTarget({ title, projectId, search, onChange, children }: WithTargetProps) {
  return (
    <WithBranch projectId={projectId} branchId={search.branch}>
      {(branch, branches) => (
        <div className="workspace">
          <header className="workspace-head">
            <h1>{title}</h1>
            <BranchSelect branches={branches} value={branch.id} onChange={(value) => onChange({ branch: value })} />
            <DatabaseSelect
              branch={branch}
              chosen={search.database}
              onChange={(database) => onChange({ branch: branch.id, database })}
            />
          </header>
          <OfBranch key={branch.id} branch={branch} database={search.database}>
            {children}
          </OfBranch>
        </div>
      )}
    </WithBranch>
  );
}

interface DatabaseSelectProps {
  readonly branch: Branch;
  readonly chosen: string | undefined;
  readonly onChange: (database: string) => void;
}

function DatabaseSelect({ branch, chosen, onChange }: DatabaseSelectProps) {
  const databases = useQuery(databasesQuery(branch.project_id, branch.id)).data ?? [];
  const value = (databases.find(({ name }) => name === chosen) ?? databases[0])?.name ?? '';
  return (
    <SelectField
      label="Database"
      value={value}
      choices={databases.map(({ name }) => ({ value: name, text: name }))}
      onChange={onChange}
    />
  );
}

interface OfBranchProps {
  readonly branch: Branch;
  readonly database: string | undefined;
  readonly children: (target: Target) => ReactNode;
}

function OfBranch({ branch, database, children }: OfBranchProps) {
  const { project_id: projectId, id: branchId } = branch;
  const databases = useQuery(databasesQuery(projectId, branchId));
  const endpoints = useQuery(endpointsQuery(projectId));
  return (
    <Loaded query={databases}>
      {(found) => (
        <Loaded query={endpoints}>
          {(computes) => {
            const chosen = found.find(({ name }) => name === database) ?? found[0];
            const primary = computes.find(({ branch_id, type }) => branch_id === branchId && type === 'read_write');
            if (chosen === undefined) return <Empty title="This branch has no database." />;
            if (primary === undefined) return <Empty title="This branch has no primary compute: add one to run SQL." />;
            const of = {
              branchId,
              endpointId: primary.id,
              database: chosen.name,
              role: chosen.owner_name,
              pooled: false,
            };
            return (
              <OfDatabase key={chosen.name} branch={branch} endpoint={primary} of={of}>
                {children}
              </OfDatabase>
            );
          }}
        </Loaded>
      )}
    </Loaded>
  );
}

interface OfDatabaseProps {
  readonly branch: Branch;
  readonly endpoint: Endpoint;
  readonly of: Parameters<typeof connectionUriQuery>[1];
  readonly children: (target: Target) => ReactNode;
}

function OfDatabase({ branch, endpoint, of, children }: OfDatabaseProps) {
  const uri = useQuery(connectionUriQuery(branch.project_id, of));
  return <Loaded query={uri}>{(text) => children({ branch, endpoint, database: of.database, uri: text })}</Loaded>;
}

interface WithUriProps {
  readonly projectId: string;
  readonly branchId: string;
  readonly database: string;
  readonly children: (target: Target) => ReactNode;
}

/** For pages on which there is nothing to choose. */
export function WithUri({ projectId, branchId, database, children }: WithUriProps) {
  return (
    <WithBranch projectId={projectId} branchId={branchId}>
      {(branch) => (
        <OfBranch branch={branch} database={database}>
          {children}
        </OfBranch>
      )}
    </WithBranch>
  );
}
