/** Widths and pins of the columns, kept while the result has the same columns. */
import { useMemo, useState, useSyncExternalStore } from 'react';
import { clampWidth, firstWidths, fittingWidth, type Layout, layOut, numbersWidthOf } from './columns.ts';
import type { Field, TypeNames } from './types.ts';
import type { Row } from './values.ts';

export interface Columns {
  readonly layout: Layout;
  readonly resize: (index: number, width: number) => void;
  /** As wide as its values. */
  readonly fitWidth: (index: number) => void;
  readonly togglePin: (index: number) => void;
}

interface Changes {
  /** What the changes belong to: a new result begins anew. */
  readonly of: string;
  readonly widths: ReadonlyMap<number, number>;
  readonly pinned: ReadonlySet<number> | null;
}

const noChanges = (of: string): Changes => ({ of, widths: new Map(), pinned: null });

export function useLayout(fields: readonly Field[], rows: readonly Row[], names: TypeNames): Columns {
  const isNarrow = useSyncExternalStore(watchNarrow, () => narrow.matches);
  const of = fields.map(({ name, dataTypeID }) => `${name} ${dataTypeID}`).join();
  const [kept, setKept] = useState(() => noChanges(of));
  const changes = kept.of === of ? kept : noChanges(of);
  const first = useMemo(() => firstWidths(fields, rows, names), [fields, rows, names]);
  const layout = useMemo(() => {
    const widths = first.map((width, index) => changes.widths.get(index) ?? (isNarrow ? Math.min(width, 170) : width));
    // On a phone the first column stands for the row.
    const pinned = changes.pinned ?? new Set(isNarrow && fields.length > 1 ? [0] : []);
    return layOut({ fields, names, widths, pinned, numbersWidth: isNarrow ? 0 : numbersWidthOf(rows.length) });
  }, [fields, names, first, changes.widths, changes.pinned, isNarrow, rows.length]);
  const resize = (index: number, width: number) =>
    setKept({ ...changes, widths: new Map(changes.widths).set(index, clampWidth(width)) });
  return {
    layout,
    resize,
    fitWidth: (index) => resize(index, fittingWidth(fields, rows, index, names)),
    togglePin: (index) => {
      const pinned = new Set(layout.columns.filter(({ isPinned }) => isPinned).map((column) => column.index));
      if (!pinned.delete(index)) pinned.add(index);
      setKept({ ...changes, pinned });
    },
  };
}

const narrow = matchMedia('(width < 860px)');

function watchNarrow(listener: () => void): () => void {
  narrow.addEventListener('change', listener);
  return () => narrow.removeEventListener('change', listener);
}
