/** Tables of things that are there: a name for each column, and what can be done to a thing at the end of its row. */
import type { ReactNode } from 'react';
import { Button, type ButtonProps } from './button.tsx';

interface TableProps {
  /** What the table is of. */
  readonly label: string;
  readonly columns: readonly string[];
  /** Those of them whose values end at the right, under their name. */
  readonly numbers?: readonly string[];
  /** Whether rows end with `RowActions`. */
  readonly hasActions?: boolean;
  /** Rows: `tr` with a cell for each column. */
  readonly children: ReactNode;
}

/** Wider than a phone, so it scrolls; the keyboard must be able to reach what scrolls. */
export function Table({ label, columns, numbers = [], hasActions = false, children }: TableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: as said above.
    <section className="table-wrap" tabIndex={0} aria-label={label}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column} scope="col" className={numbers.includes(column) ? 'number' : undefined}>
                {column}
              </th>
            ))}
            {hasActions && (
              <th scope="col">
                <span className="visually-hidden">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}

export function RowActions({ children }: { readonly children: ReactNode }) {
  return <td className="actions">{children}</td>;
}

export function RowAction(props: Pick<ButtonProps, 'disabled' | 'onClick' | 'children' | 'aria-label'>) {
  return <Button small tone="quiet" {...props} />;
}
