/** Brings a row that has just been added onto the screen: it may stand hundreds of rows below. */
import { useEffect, useRef } from 'react';
import { cellAt } from './selection.ts';
import type { Grid } from './use-grid.ts';

export function useInserted(grid: Grid): void {
  const inserted = insertedIn(grid);
  const before = useRef(inserted);
  useEffect(() => {
    const isMore = inserted > before.current;
    before.current = inserted;
    if (!isMore) return;
    const row = grid.rowCount - 1;
    const column = Math.max(
      0,
      grid.layout.columns.findIndex((_, place) => grid.canEdit({ row, column: place })),
    );
    // The focus first: a grid without a selection begins one at its first cell when the focus comes.
    grid.scroller.current?.focus();
    grid.select(cellAt({ row, column }));
    grid.show({ row, column });
  });
}

function insertedIn({ editing }: Grid): number {
  if (editing === undefined) return 0;
  return [...editing.states.values()].filter(({ kind }) => kind === 'new').length;
}
