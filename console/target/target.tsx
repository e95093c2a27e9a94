/** The database that a page works on: branch and database from the address, and its owner's connection string. */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Branch, Endpoint } from '../api/generated.ts';
import { connectionUriQuery, databasesQuery, endpointsQuery } from '../api/queries.ts';
import { Button } from '../ui/button.tsx';
import { SelectField } from '../ui/field.tsx';
import { fullTime } from '../ui/format.ts';
import { Empty, Loaded } from '../ui/states.tsx';
import { BranchSelect, WithBranch } from './branch-choice.tsx';
import { uriAt } from './moment.ts';

export interface TargetSearch {
  readonly branch?: string | undefined;
  readonly database?: string | undefined;
  /** A moment of the past, which is looked at read-only. */
  readonly at?: string | undefined;
}

export interface Target {
  readonly branch: Branch;
  readonly database: string;
  readonly uri: string;
  /** The primary compute, which runs the SQL. */
  readonly endpoint: Endpoint;
  /** Set for the past: nothing can be written. */
  readonly moment: string | undefined;
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
            {search.at !== undefined && (
              <Past branch={branch} moment={search.at} onNow={() => onChange({ ...search, at: undefined })} />
            )}
            <BranchSelect branches={branches} value={branch.id} onChange={(value) => onChange({ branch: value })} />
            <DatabaseSelect
              branch={branch}
              chosen={search.database}
              onChange={(database) => onChange({ branch: branch.id, database, at: search.at })}
            />
          </header>
          <OfBranch key={`${branch.id} ${search.at}`} branch={branch} database={search.database} moment={search.at}>
            {children}
          </OfBranch>
        </div>
      )}
    </WithBranch>
  );
}

interface PastProps {
  readonly branch: Branch;
  readonly moment: string;
  readonly onNow: () => void;
}

/** Always in sight, so that nobody takes the past for the present. */
function Past({ branch, moment, onNow }: PastProps) {
  return (
    <p className="past" role="status">
      <span>
        {branch.name} as it was at {moment.includes('/') ? moment : fullTime(moment)}, read only
      </span>
      <Button small onClick={onNow}>
        Back to now
      </Button>
    </p>
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
  readonly moment?: string | undefined;
  readonly children: (target: Target) => ReactNode;
}

function OfBranch({ branch, database, moment, children }: OfBranchProps) {
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
              <OfDatabase key={chosen.name} branch={branch} endpoint={primary} of={of} moment={moment}>
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
  readonly moment: string | undefined;
  readonly children: (target: Target) => ReactNode;
}

function OfDatabase({ branch, endpoint, of, moment, children }: OfDatabaseProps) {
  const uri = useQuery(connectionUriQuery(branch.project_id, of));
  return (
    <Loaded query={uri}>
      {(text) => {
        const shown = moment === undefined ? text : uriAt(text, moment);
        return children({ branch, endpoint, database: of.database, uri: shown, moment });
      }}
    </Loaded>
  );
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
