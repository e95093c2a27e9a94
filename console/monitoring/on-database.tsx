/** A view that asks a database by SQL, as its owner: which database, and the connection string of this compute. */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Endpoint } from '../api/generated.ts';
import { connectionUriQuery, databasesQuery } from '../api/queries.ts';
import { SelectField } from '../ui/field.tsx';
import { Empty, Loaded } from '../ui/states.tsx';

export interface DatabaseTarget {
  readonly endpoint: Endpoint;
  readonly database: string;
  readonly uri: string;
  /** The choice of the database, for the head of the view. */
  readonly choice: ReactNode;
}

interface OnDatabaseProps {
  readonly endpoint: Endpoint;
  readonly database: string | undefined;
  readonly onDatabase: (database: string) => void;
  readonly children: (target: DatabaseTarget) => ReactNode;
}

export function OnDatabase({ endpoint, database, onDatabase, children }: OnDatabaseProps) {
  const databases = useQuery(databasesQuery(endpoint.project_id, endpoint.branch_id));
  return (
    <Loaded query={databases}>
      {(found) => {
        const chosen = found.find(({ name }) => name === database) ?? found[0];
        if (chosen === undefined) return <Empty title="This branch has no database." />;
        const choices = found.map(({ name }) => ({ value: name, text: name }));
        const choice = <SelectField label="Database" value={chosen.name} choices={choices} onChange={onDatabase} />;
        const of = {
          branchId: endpoint.branch_id,
          endpointId: endpoint.id,
          database: chosen.name,
          role: chosen.owner_name,
          pooled: false,
        };
        return (
          <WithUri key={chosen.name} projectId={endpoint.project_id} of={of}>
            {(uri) => children({ endpoint, database: chosen.name, uri, choice })}
          </WithUri>
        );
      }}
    </Loaded>
  );
}

interface WithUriProps {
  readonly projectId: string;
  readonly of: Parameters<typeof connectionUriQuery>[1];
  readonly children: (uri: string) => ReactNode;
}

function WithUri({ projectId, of, children }: WithUriProps) {
  const uri = useQuery(connectionUriQuery(projectId, of));
  return <Loaded query={uri}>{children}</Loaded>;
}

/** For what is asked once, and again by a button: each question counts as use, and keeps the compute awake. */
export const askedOnce = {
  staleTime: Number.POSITIVE_INFINITY,
  gcTime: 0,
  refetchOnWindowFocus: false,
  refetchOnReconnect: false,
  retry: false,
} as const;
