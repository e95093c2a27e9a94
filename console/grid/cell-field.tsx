/** A cell while it is written in. Enter and Tab keep what was written and go on, Escape gives it up. */
import { type KeyboardEvent, useEffect, useRef, useState } from 'react';
import { cellAt } from './selection.ts';
import type { Edited, Grid } from './use-grid.ts';

interface CellFieldProps {
  readonly grid: Grid;
  readonly edited: Edited;
}

export function CellField({ grid, edited }: CellFieldProps) {
  const { row, column, typed } = edited;
  const of = grid.layout.columns[column];
  const index = of?.index ?? 0;
  const old = grid.valuesAt(row)[index] ?? null;
  const [text, setText] = useState(typed ?? old ?? '');
  const field = useRef<HTMLInputElement>(null);
  const isDone = useRef(false);
  useEffect(() => {
    field.current?.focus();
    if (typed === null) field.current?.select();
  }, [typed]);
  const end = (isKept: boolean) => {
    if (isDone.current) return;
    isDone.current = true;
    // A NULL that nobody has written over stays one.
    if (isKept && (text !== '' || old !== null) && text !== old) grid.editing?.onEdit(grid.rowAt(row), index, text);
    grid.edit(null);
  };
  const press = (event: KeyboardEvent) => {
    event.stopPropagation();
    const step = { Enter: [1, 0], Tab: [0, event.shiftKey ? -1 : 1], Escape: [0, 0] }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    end(event.key !== 'Escape');
    const [down = 0, right = 0] = step;
    const next = {
      row: Math.min(grid.rowCount - 1, row + down),
      column: Math.max(0, Math.min(grid.layout.columns.length - 1, column + right)),
    };
    grid.select(cellAt(next));
    grid.show(next);
    grid.scroller.current?.focus();
  };
  return (
    <input
      ref={field}
      className="grid-field"
      aria-label={`${of?.name ?? ''}, row ${row + 1}`}
      value={text}
      spellCheck={false}
      onChange={(event) => setText(event.target.value)}
      onKeyDown={press}
      onBlur={() => end(true)}
    />
  );
}
