/**
 * The grid of the SQL editor and of the tables. It draws the rows and columns that are on the screen and no others, so
 * that a hundred thousand rows scroll as ten do. The focus stays on the grid itself, which names its active cell: a
 * cell that scrolls away may vanish without taking the focus along.
 */
import { type ReactNode, useId, useState } from 'react';
import { count } from '../ui/format.ts';
import { Icon } from '../ui/icons.tsx';
import { Menu, MenuButton, type MenuItem, type Point } from '../ui/menu.tsx';
import { CellField } from './cell-field.tsx';
import { CellViewer } from './cell-viewer.tsx';
import { gridEvents } from './grid-events.ts';
import { GridHead } from './grid-head.tsx';
import { copyItems, fileItems, menuItems, selectedCells } from './grid-menus.ts';
import { cellId, GridRow } from './grid-row.tsx';
import type { Cell } from './selection.ts';
import { noTypeNames } from './types.ts';
import { type Grid, type GridContent, useGrid } from './use-grid.ts';
import { useInserted } from './use-inserted.ts';

type Content = Pick<GridContent, 'fields' | 'rows'> & Partial<GridContent>;

interface DataGridProps extends Content {
  readonly label: string;
  /** What is known of the result, such as the number of its rows. */
  readonly note: ReactNode;
  /** The name of files with the rows, without an ending. */
  readonly fileName: string;
  /** More ways to get a file, for rows that are not here. */
  readonly exports?: readonly MenuItem[];
  /** Beside the grid's own. */
  readonly tools?: ReactNode;
}

export function DataGrid({ label, note, fileName, exports = [], tools, ...content }: DataGridProps) {
  const { fields, rows, typeNames = noTypeNames, table = 'result', sorting, editing, links } = content;
  const grid = useGrid({ fields, rows, typeNames, table, sorting, editing, links });
  useInserted(grid);
  const id = useId();
  const [viewed, setViewed] = useState<Cell | null>(null);
  const [menu, setMenu] = useState<{ readonly cell: Cell; readonly at: Point } | null>(null);
  const onMenu = (cell: Cell, at: Point) => setMenu({ cell, at });
  const files = [...exports, ...fileItems(() => grid.cellsIn(grid.everything), fileName)];
  return (
    <div className="grid-frame">
      <Bar grid={grid} note={note} files={files} tools={tools} />
      {/* biome-ignore lint/a11y/useSemanticElements: a table cannot leave out what is not on the screen. */}
      <div
        ref={grid.scroller}
        className="grid"
        role="grid"
        aria-label={label}
        aria-rowcount={rows.length + 1}
        aria-colcount={fields.length}
        aria-multiselectable="true"
        aria-activedescendant={grid.selection === null ? undefined : cellId(id, grid.selection.active)}
        tabIndex={0}
        {...gridEvents(grid, { id, onView: setViewed, onMenu })}
      >
        {/* biome-ignore lint/a11y/useSemanticElements: as above. */}
        <div className="grid-sheet" role="rowgroup" style={{ height: grid.height, width: grid.layout.width }}>
          <GridHead id={id} grid={grid} onMenu={onMenu} />
          <Rows id={id} grid={grid} />
        </div>
      </div>
      {menu !== null && (
        <Menu label="Cells" items={menuItems(grid, menu.cell, setViewed)} at={menu.at} onClose={() => setMenu(null)} />
      )}
      {viewed !== null && <Viewed grid={grid} cell={viewed} onView={setViewed} />}
    </div>
  );
}

function Rows({ id, grid }: { readonly id: string; readonly grid: Grid }) {
  const { selection, range, layout, edited, editing } = grid;
  return grid.drawnRows.map(({ index, start }) => {
    const isSelected = range !== null && index >= range.top && index <= range.bottom;
    return (
      <GridRow
        key={index}
        id={id}
        row={index}
        top={start}
        values={grid.valuesAt(index)}
        drawn={edited?.row === index ? grid.drawnInEdited : grid.drawn}
        numbersWidth={layout.numbersWidth}
        width={layout.width}
        from={isSelected ? range.left : -1}
        to={isSelected ? range.right : -1}
        active={selection !== null && selection.active.row === index ? selection.active.column : -1}
        state={editing?.states.get(grid.rowAt(index))}
        links={grid.links}
        field={edited?.row === index ? <CellField grid={grid} edited={edited} /> : null}
      />
    );
  });
}

interface BarProps {
  readonly grid: Grid;
  readonly note: ReactNode;
  readonly files: readonly MenuItem[];
  readonly tools: ReactNode;
}

function Bar({ grid, note, files, tools }: BarProps) {
  const range = selectedCells(grid);
  const rows = range === null ? 0 : range.bottom - range.top + 1;
  const columns = range === null ? 0 : range.right - range.left + 1;
  return (
    <div className="grid-bar">
      <p className="result-note" role="status">
        {note}
      </p>
      {rows * columns > 1 && <p className="hint">{`${count(rows, 'row')} × ${count(columns, 'column')} selected`}</p>}
      <span className="grid-tools">
        {tools}
        <MenuButton small tone="quiet" menu="Copy" items={copyItems(grid, range ?? grid.everything, 'Copy')}>
          <Icon name="copy" /> {rows * columns > 1 ? 'Copy selection' : range === null ? 'Copy all' : 'Copy cell'}
        </MenuButton>
        <MenuButton small tone="quiet" menu="Export" items={files}>
          <Icon name="download" /> Export
        </MenuButton>
      </span>
    </div>
  );
}

interface ViewedProps {
  readonly grid: Grid;
  readonly cell: Cell;
  readonly onView: (cell: Cell | null) => void;
}

function Viewed({ grid, cell, onView }: ViewedProps) {
  const column = grid.layout.columns[cell.column];
  if (column === undefined) return null;
  const step = (by: number) => {
    const row = cell.row + by;
    return row < 0 || row >= grid.rowCount ? undefined : () => onView({ ...cell, row });
  };
  return (
    <CellViewer
      column={column}
      row={cell.row}
      value={grid.valuesAt(cell.row)[column.index] ?? null}
      onPrevious={step(-1)}
      onNext={step(1)}
      onClose={() => onView(null)}
    />
  );
}
