/** Tables of a database and their rows. Nothing can be changed here: every query runs in a read-only transaction. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { runSql } from '../api/sql.ts';
import { quoteName, readTables, type Table } from '../sql/catalog.ts';
import { ResultGrid } from '../sql/result-grid.tsx';
import { type Target, WithTarget } from '../target/target.tsx';
import { Card, PageHead } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { SelectField } from '../ui/field.tsx';
import { Empty, Loaded } from '../ui/states.tsx';

const rowsOfPage = 50;

export function TablesPage() {
  const { projectId } = useParams({ from: '/projects/$projectId/tables' });
  const search = useSearch({ from: '/projects/$projectId/tables' });
  const navigate = useNavigate({ from: '/projects/$projectId/tables' });
  return (
    <>
      <title>Tables · Catnap</title>
      <PageHead title="Tables" lead="Read only. Opening this page wakes the compute." />
      <WithTarget projectId={projectId} search={search} onChange={(next) => navigate({ search: next })}>
        {(target) => (
          <Browser
            target={target}
            chosen={search.table}
            page={search.page ?? 0}
            onChoose={(table, page) =>
              navigate({ search: (now) => ({ ...now, table, page: page === 0 ? undefined : page }) })
            }
          />
        )}
      </WithTarget>
    </>
  );
}

interface BrowserProps {
  readonly target: Target;
  readonly chosen: string | undefined;
  readonly page: number;
  readonly onChoose: (table: string, page: number) => void;
}

const nameOf = ({ schema, name }: Table) => `${schema}.${name}`;

function Browser({ target, chosen, page, onChoose }: BrowserProps) {
  const tables = useQuery({
    // Not under the project: a change there, such as a suspend, must not cause a query that wakes the compute again.
    queryKey: ['tables', target.branch.id, target.database],
    queryFn: () => readTables(target.uri),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    refetchOnWindowFocus: false,
    retry: false,
  });
  return (
    <Loaded query={tables}>
      {(found) => {
        const table = found.find((one) => nameOf(one) === chosen) ?? found[0];
        if (table === undefined) return <Empty title="This database has no table yet." />;
        return (
          <>
            <div className="toolbar">
              <SelectField
                label="Table"
                value={nameOf(table)}
                choices={found.map((one) => ({ value: nameOf(one), text: `${nameOf(one)} (${one.kind})` }))}
                onChange={(value) => onChoose(value, 0)}
              />
            </div>
            <Rows
              key={nameOf(table)}
              target={target}
              table={table}
              page={page}
              onPage={(next) => onChoose(nameOf(table), next)}
            />
          </>
        );
      }}
    </Loaded>
  );
}

interface RowsProps {
  readonly target: Target;
  readonly table: Table;
  readonly page: number;
  readonly onPage: (page: number) => void;
}

function Rows({ target, table, page, onPage }: RowsProps) {
  const rows = useQuery({
    queryKey: ['rows', target.uri, nameOf(table), page],
    // One more than is shown, to know whether there is a next page.
    queryFn: ({ signal }) =>
      runSql(
        target.uri,
        `select * from ${quoteName(table.schema)}.${quoteName(table.name)} limit ${rowsOfPage + 1} offset ${page * rowsOfPage}`,
        { readOnly: true, signal },
      ),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    refetchOnWindowFocus: false,
    retry: false,
  });
  return (
    <Card
      title={nameOf(table)}
      actions={
        <Button small busy={rows.isFetching} onClick={() => rows.refetch()}>
          Refresh
        </Button>
      }
    >
      <Loaded query={rows}>
        {(result) => (
          <>
            <ResultGrid result={{ ...result, rows: result.rows.slice(0, rowsOfPage) }} />
            <div className="row pager">
              <Button small disabled={page === 0} onClick={() => onPage(page - 1)}>
                Previous
              </Button>
              <span className="hint">Page {page + 1}</span>
              <Button small disabled={result.rows.length <= rowsOfPage} onClick={() => onPage(page + 1)}>
                Next
              </Button>
            </div>
          </>
        )}
      </Loaded>
    </Card>
  );
}
