/** The tables of a database at the side, with a search and the number of their rows. */
import { useState } from 'react';
import type { Table } from '../sql/catalog.ts';

interface TableListProps {
  readonly tables: readonly Table[];
  readonly chosen: Table | undefined;
  readonly onChoose: (table: Table) => void;
}

export const nameOf = ({ schema, name }: Pick<Table, 'schema' | 'name'>) => `${schema}.${name}`;

/** `1,234`, `12.3k`: what a server estimates needs no more digits. */
export function roughly(rows: number): string {
  if (rows < 10_000) return rows.toLocaleString('en');
  return new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 }).format(rows);
}

export function TableList({ tables, chosen, onChoose }: TableListProps) {
  const [words, setWords] = useState('');
  const found = tables.filter((table) => nameOf(table).toLowerCase().includes(words.trim().toLowerCase()));
  const schemas = [...new Set(found.map(({ schema }) => schema))];
  return (
    <nav className="table-list" aria-label="Tables">
      <input
        className="input"
        type="search"
        aria-label="Search tables"
        placeholder="Search tables"
        value={words}
        onChange={(event) => setWords(event.target.value)}
      />
      <div className="table-names">
        {schemas.map((schema) => (
          <section key={schema} aria-label={schema}>
            <h2>{schema}</h2>
            <ul>
              {found
                .filter((table) => table.schema === schema)
                .map((table) => (
                  <li key={table.name}>
                    <button
                      type="button"
                      aria-current={table === chosen ? 'true' : undefined}
                      title={`${nameOf(table)}, ${table.kind}`}
                      onClick={() => onChoose(table)}
                    >
                      <span className="table-name">{table.name}</span>
                      <span className="hint">
                        {table.kind !== 'table' && shortKinds[table.kind]}{' '}
                        {table.estimate !== null && table.kind !== 'view' && roughly(table.estimate)}
                      </span>
                    </button>
                  </li>
                ))}
            </ul>
          </section>
        ))}
        {found.length === 0 && <p className="hint">No table matches.</p>}
      </div>
    </nav>
  );
}

const shortKinds: Readonly<Record<string, string>> = {
  view: 'view',
  'materialized view': 'mat. view',
  'partitioned table': 'partitioned',
  'foreign table': 'foreign',
};
