/** How the tables of a database refer to each other: a diagram, and the same as a table for those who cannot see it. */
import { queryOptions, useQuery } from '@tanstack/react-query';
import { runSql } from '../api/sql.ts';
import type { Table as TableName } from '../sql/catalog.ts';
import { Empty, Loaded } from '../ui/states.tsx';
import { Table } from '../ui/table.tsx';
import { boxWidth, layOut, type Reference } from './diagram-layout.ts';
import { columnNames } from './table-facts.ts';
import { nameOf } from './table-list.tsx';

/** Those of partitions are those of their parent, once more. */
const query = `
  select coalesce(json_agg(json_build_object('from', n.nspname || '.' || c.relname,
    'to', fn.nspname || '.' || fc.relname, 'columns', ${columnNames('f.conkey', 'f.conrelid')},
    'references', ${columnNames('f.confkey', 'f.confrelid')}) order by n.nspname, c.relname, f.conname), '[]')::text
  from pg_constraint f join pg_class c on c.oid = f.conrelid join pg_namespace n on n.oid = c.relnamespace
  join pg_class fc on fc.oid = f.confrelid join pg_namespace fn on fn.oid = fc.relnamespace
  where f.contype = 'f' and f.conparentid = 0`;

const referencesQuery = (uri: string) =>
  queryOptions({
    queryKey: ['references', uri],
    queryFn: async ({ signal }) => {
      const { rows } = await runSql(uri, query, { readOnly: true, signal });
      return JSON.parse(rows[0]?.[0] ?? '[]') as Reference[];
    },
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    refetchOnWindowFocus: false,
    retry: false,
  });

interface DiagramProps {
  readonly uri: string;
  readonly tables: readonly TableName[];
  readonly chosen: TableName;
  readonly onChoose: (table: TableName) => void;
}

export function Diagram({ uri, tables, chosen, onChoose }: DiagramProps) {
  const found = useQuery(referencesQuery(uri));
  const open = (name: string) => {
    const table = tables.find((one) => nameOf(one) === name);
    if (table !== undefined) onChoose(table);
  };
  return (
    <Loaded query={found}>
      {(references) =>
        references.length === 0 ? (
          <Empty title="No table of this database refers to another one by a foreign key." />
        ) : (
          <div className="diagram-view">
            <Drawing references={references} chosen={nameOf(chosen)} onOpen={open} />
            <ReferenceTable references={references} />
          </div>
        )
      }
    </Loaded>
  );
}

interface DrawingProps {
  readonly references: readonly Reference[];
  readonly chosen: string;
  readonly onOpen: (name: string) => void;
}

/** Room for lines that run around a table on the right. */
const margin = 48;

function Drawing({ references, chosen, onOpen }: DrawingProps) {
  const { boxes, lines, width, height } = layOut(references);
  return (
    <div className="diagram-scroll">
      <div className="diagram" style={{ width: width + margin, height }}>
        <svg className="diagram-lines" width={width + margin} height={height} aria-hidden="true" focusable="false">
          {lines.map((line, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: lines have no name, and the list is never changed.
            <path key={index} d={line} />
          ))}
        </svg>
        {boxes.map(({ name, columns, x, y, height: boxHeight }) => (
          <button
            key={name}
            type="button"
            className="diagram-table"
            aria-current={name === chosen ? 'true' : undefined}
            style={{ left: x, top: y, width: boxWidth, height: boxHeight }}
            onClick={() => onOpen(name)}
          >
            <span className="diagram-name">{name.replace(/^public\./, '')}</span>
            {columns.map((column) => (
              <span key={column} className="diagram-column">
                {column}
              </span>
            ))}
          </button>
        ))}
      </div>
    </div>
  );
}

function ReferenceTable({ references }: { readonly references: readonly Reference[] }) {
  return (
    <section className="card diagram-keys">
      <header className="card-head">
        <h2>Foreign keys</h2>
      </header>
      <Table label="Foreign keys" columns={['From', 'To']}>
        {references.map(({ from, to, columns, references: targets }) => (
          <tr key={`${from} ${columns.join()} ${to}`}>
            <td>
              <code>
                {from} ({columns.join(', ')})
              </code>
            </td>
            <td>
              <code>
                {to} ({targets.join(', ')})
              </code>
            </td>
          </tr>
        ))}
      </Table>
    </section>
  );
}
