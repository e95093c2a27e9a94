/** The filters of a table's rows. They count once they are applied, and then stand in the address. */
import { type FormEvent, useState } from 'react';
import { Button } from '../ui/button.tsx';
import { Icon } from '../ui/icons.tsx';
import { type Filter, type Operator, operators, takesValue } from './filters.ts';

interface FilterBarProps {
  readonly columns: readonly string[];
  readonly filters: readonly Filter[];
  readonly onApply: (filters: readonly Filter[]) => void;
}

export function FilterBar({ columns, filters, onApply }: FilterBarProps) {
  const [rows, setRows] = useState(filters);
  const change = (at: number, part: Partial<Filter>) =>
    setRows(rows.map((row, place) => (place === at ? { ...row, ...part } : row)));
  const remove = (at: number) => {
    const rest = rows.filter((_, place) => place !== at);
    setRows(rest);
    if (at < filters.length) onApply(rest);
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onApply(rows);
  };
  const add = () => setRows([...rows, { column: columns[0] ?? '', operator: '=', value: '' }]);
  return (
    <form className="filter-bar" aria-label="Filters" onSubmit={submit}>
      {rows.map((filter, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: filters have no other name.
        <span key={at} className="filter">
          <select
            className="input"
            aria-label={`Column of filter ${at + 1}`}
            value={filter.column}
            onChange={(event) => change(at, { column: event.target.value })}
          >
            {columns.map((column) => (
              <option key={column}>{column}</option>
            ))}
          </select>
          <select
            className="input"
            aria-label={`Operator of filter ${at + 1}`}
            value={filter.operator}
            onChange={(event) => change(at, { operator: event.target.value as Operator })}
          >
            {operators.map((operator) => (
              <option key={operator}>{operator}</option>
            ))}
          </select>
          {takesValue(filter.operator) && (
            <input
              className="input"
              aria-label={`Value of filter ${at + 1}`}
              value={filter.value}
              autoComplete="off"
              spellCheck={false}
              onChange={(event) => change(at, { value: event.target.value })}
            />
          )}
          <Button small tone="quiet" aria-label={`Remove filter ${at + 1}`} onClick={() => remove(at)}>
            <Icon name="close" />
          </Button>
        </span>
      ))}
      <Button small tone="quiet" onClick={add}>
        <Icon name="plus" /> Filter
      </Button>
      {rows.length > 0 && (
        <Button small type="submit">
          Apply
        </Button>
      )}
    </form>
  );
}
