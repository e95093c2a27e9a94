/** Which rows are shown, and of how many: estimated by the server, or counted when somebody asks. */
import { useMutation } from '@tanstack/react-query';
import { runSql } from '../api/sql.ts';
import type { Target } from '../target/target.tsx';
import { Button } from '../ui/button.tsx';
import { count } from '../ui/format.ts';
import type { TableShape } from './changes.ts';
import { countSql, type Filter } from './filters.ts';
import { roughly } from './table-list.tsx';

interface RowCountProps {
  readonly target: Target;
  readonly shape: TableShape;
  readonly filters: readonly Filter[];
  readonly estimate: number | null;
  readonly first: number;
  readonly last: number;
  /** All rows are shown, so their number is known. */
  readonly isWhole: boolean;
}

export function RowCount({ target, shape, filters, estimate, first, last, isWhole }: RowCountProps) {
  const sql = countSql(shape, filters);
  const counting = useMutation({
    mutationFn: async () => {
      const { rows } = await runSql(target.uri, sql, { readOnly: true });
      return { sql, rows: Number(rows[0]?.[0] ?? 0) };
    },
  });
  if (isWhole) return count(first === 0 ? 0 : last, 'row');
  const shown = `Rows ${first.toLocaleString('en')} – ${last.toLocaleString('en')}`;
  // A count is of the filters that it was made with.
  if (counting.data?.sql === sql) return `${shown} of ${counting.data.rows.toLocaleString('en')}`;
  return (
    <>
      {shown}
      {filters.length === 0 && estimate !== null && ` of about ${roughly(estimate)}`}{' '}
      <Button small tone="quiet" busy={counting.isPending} onClick={() => counting.mutate()}>
        Count exactly
      </Button>
    </>
  );
}
