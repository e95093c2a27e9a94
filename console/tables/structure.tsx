/** What a table is made of: columns, indexes, constraints, policies, triggers, and its size. */
import { Card } from '../ui/bits.tsx';
import { bytes } from '../ui/format.ts';
import { Table } from '../ui/table.tsx';
import type { TableFacts } from './table-facts.ts';

export function Structure({ facts }: { readonly facts: TableFacts }) {
  return (
    <div className="structure">
      <p className="hint">
        {bytes(facts.table_bytes)} of data, {bytes(facts.total_bytes - facts.table_bytes)} of indexes
        {facts.row_security && ', row security is on'}
      </p>
      <Card title="Columns">
        <Table label="Columns" columns={['Name', 'Type', 'Null', 'Default', 'Comment']}>
          {facts.columns.map((column) => (
            <tr key={column.name}>
              <td>
                <code>{column.name}</code>
                {facts.primary_key.includes(column.name) && <span className="hint"> primary key</span>}
              </td>
              <td>
                <code>{column.type}</code>
              </td>
              <td>{column.not_null ? 'not null' : ''}</td>
              <td>{column.default !== null && <code>{column.default}</code>}</td>
              <td>{column.comment}</td>
            </tr>
          ))}
        </Table>
      </Card>
      <Definitions
        title="Indexes"
        list={facts.indexes.map(({ name, definition, bytes: size }) => ({
          name: `${name} · ${bytes(size)}`,
          definition,
        }))}
      />
      <Definitions title="Constraints" list={facts.constraints} />
      <Definitions title="Policies" list={facts.policies} />
      <Definitions title="Triggers" list={facts.triggers} />
    </div>
  );
}

interface DefinitionsProps {
  readonly title: string;
  readonly list: readonly { readonly name: string; readonly definition: string }[];
}

function Definitions({ title, list }: DefinitionsProps) {
  if (list.length === 0) return null;
  return (
    <Card title={title}>
      <dl className="definitions">
        {list.map(({ name, definition }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <code>{definition}</code>
            </dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}
