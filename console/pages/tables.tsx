/** The tables of a database: their rows, which can be edited, and what they are made of. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useCallback } from 'react';
import { readTables, type Table } from '../sql/catalog.ts';
import { Diagram } from '../tables/diagram.tsx';
import { type Filter, type RowsWish, readFilters } from '../tables/filters.ts';
import { Rows } from '../tables/rows.tsx';
import type { TablesSearch } from '../tables/search.ts';
import { Structure } from '../tables/structure.tsx';
import { tableFactsQuery } from '../tables/table-facts.ts';
import { nameOf, TableList } from '../tables/table-list.tsx';
import { type Target, type TargetSearch, WithTarget } from '../target/target.tsx';
import { Empty, Loaded } from '../ui/states.tsx';
import { Tabs } from '../ui/tabs.tsx';

export function TablesPage() {
  const { projectId } = useParams({ from: '/projects/$projectId/tables' });
  const search = useSearch({ from: '/projects/$projectId/tables' });
  const navigate = useNavigate({ from: '/projects/$projectId/tables' });
  const onSearch = useCallback(
    (next: TablesSearch) =>
      void navigate({ search: ({ branch, database, at }: TargetSearch) => ({ branch, database, at, ...next }) }),
    [navigate],
  );
  return (
    <>
      <title>Tables · Catnap</title>
      <WithTarget title="Tables" projectId={projectId} search={search} onChange={(next) => navigate({ search: next })}>
        {(target) => <Browser target={target} search={search} onSearch={onSearch} />}
      </WithTarget>
    </>
  );
}

interface BrowserProps {
  readonly target: Target;
  readonly search: TablesSearch;
  readonly onSearch: (search: TablesSearch) => void;
}

function Browser({ target, search, onSearch }: BrowserProps) {
  const tables = useQuery({
    // Not under the project: a change there, such as a suspend, must not cause a query that wakes the compute again.
    queryKey: ['tables', target.branch.id, target.database, ...(target.moment === undefined ? [] : [target.moment])],
    queryFn: () => readTables(target.uri),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    refetchOnWindowFocus: false,
    retry: false,
  });
  return (
    <Loaded query={tables}>
      {(found) => {
        const table = found.find((one) => nameOf(one) === search.table) ?? found[0];
        if (table === undefined) return <Empty title="This database has no table yet." />;
        return (
          <div className="browser">
            <TableList tables={found} chosen={table} onChoose={(next) => onSearch({ table: nameOf(next) })} />
            <TableView
              key={nameOf(table)}
              target={target}
              tables={found}
              table={table}
              search={search}
              onSearch={onSearch}
            />
          </div>
        );
      }}
    </Loaded>
  );
}

interface TableViewProps extends BrowserProps {
  readonly tables: readonly Table[];
  readonly table: Table;
}

function TableView({ target, tables, table, search, onSearch }: TableViewProps) {
  const facts = useQuery(tableFactsQuery(target.uri, table.schema, table.name));
  const name = nameOf(table);
  const wish: RowsWish = {
    filters: readFilters(search.where),
    sort: search.sort === undefined ? null : { column: search.sort, isDescending: search.desc === true },
    page: search.page ?? 1,
  };
  const onOpen = useCallback(
    (other: Pick<Table, 'schema' | 'name'>, filters: readonly Filter[]) =>
      onSearch({ table: nameOf(other), where: filters }),
    [onSearch],
  );
  const onWish = ({ filters, sort, page }: RowsWish) =>
    onSearch({
      table: name,
      where: filters.length === 0 ? undefined : filters,
      sort: sort?.column,
      desc: sort?.isDescending === true ? true : undefined,
      page: page === 1 ? undefined : page,
    });
  return (
    <section className="browser-table" aria-label={name}>
      <Tabs
        label="View"
        tabs={[
          { id: 'rows', text: table.name },
          { id: 'structure', text: 'Structure' },
          { id: 'diagram', text: 'Diagram' },
        ]}
        chosen={search.view ?? 'rows'}
        onChoose={(view) =>
          onSearch({ ...searchOf(search), view: view === 'structure' || view === 'diagram' ? view : undefined })
        }
      >
        {search.view === 'diagram' ? (
          <Diagram
            uri={target.uri}
            tables={tables}
            chosen={table}
            onChoose={(next) => onSearch({ table: nameOf(next), view: 'diagram' })}
          />
        ) : (
          <Loaded query={facts}>
            {(found) =>
              search.view === 'structure' ? (
                <Structure facts={found} />
              ) : (
                <Rows target={target} table={table} facts={found} wish={wish} onWish={onWish} onOpen={onOpen} />
              )
            }
          </Loaded>
        )}
      </Tabs>
    </section>
  );
}

const searchOf = ({ table, page, sort, desc, where }: TablesSearch): TablesSearch => ({
  table,
  page,
  sort,
  desc,
  where,
});
