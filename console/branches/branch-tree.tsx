/**
 * Branches as the tree that they are, one line each. Only the lines on the screen are drawn, so that a thousand
 * branches are no more work than ten.
 */
import { useVirtualizer } from '@tanstack/react-virtual';
import { useDeferredValue, useMemo, useRef, useState } from 'react';
import type { Branch, Endpoint, Operation } from '../api/generated.ts';
import { Button } from '../ui/button.tsx';
import { Icon } from '../ui/icons.tsx';
import { Empty } from '../ui/states.tsx';
import { BranchLine } from './branch-line.tsx';
import { type SortKey, type TreeOrder, treeRows } from './tree-rows.ts';

interface TreeProps {
  readonly branches: readonly Branch[];
  readonly endpoints: readonly Endpoint[];
  readonly operations: readonly Operation[];
}

const lineHeight = 38;
const linesAhead = 8;
/** Below this nobody needs to search. */
const searchedFrom = 6;

export function BranchTree({ branches, endpoints, operations }: TreeProps) {
  const [words, setWords] = useState('');
  const wanted = useDeferredValue(words);
  const [order, setOrder] = useState<TreeOrder | null>(null);
  const [collapsed, setCollapsed] = useState<ReadonlySet<string>>(new Set());
  const rows = useMemo(
    () => treeRows(branches, endpoints, { words: wanted, order, collapsed }),
    [branches, endpoints, wanted, order, collapsed],
  );
  const scroller = useRef<HTMLDivElement>(null);
  const lines = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => lineHeight,
    overscan: linesAhead,
    getItemKey: (index) => rows[index]?.branch.id ?? index,
    useFlushSync: false,
  });
  const toggle = (id: string) => setCollapsed((now) => (now.has(id) ? without(now, id) : new Set([...now, id])));
  const parents = useMemo(() => parentsAmong(branches), [branches]);
  return (
    <div className="branch-table">
      <div className="branch-tools">
        {branches.length >= searchedFrom && (
          <input
            className="input"
            type="search"
            aria-label="Search branches"
            placeholder="Search by name or id"
            value={words}
            onChange={(event) => setWords(event.target.value)}
          />
        )}
        <p className="hint" role="status">
          {summaryOf(branches, endpoints, wanted === '' ? null : rows.length)}
        </p>
        {parents.length > 1 && (
          <Button small tone="quiet" onClick={() => setCollapsed(collapsed.size > 0 ? new Set() : new Set(parents))}>
            {collapsed.size > 0 ? 'Expand all' : 'Collapse all'}
          </Button>
        )}
      </div>
      <Head order={order} onOrder={setOrder} />
      {rows.length === 0 ? (
        <Empty title={`No branch has “${wanted}” in its name or ids.`} />
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must reach it.
        <section className="branch-lines" ref={scroller} aria-label="Branches" tabIndex={0}>
          <ul style={{ height: lines.getTotalSize() }}>
            {lines.getVirtualItems().map(({ index, key, start }) => {
              const row = rows[index];
              if (row === undefined) return null;
              return (
                <li key={key} aria-setsize={rows.length} aria-posinset={index + 1} style={{ top: start }}>
                  <BranchLine
                    row={row}
                    branches={branches}
                    endpoints={endpoints}
                    operations={operations}
                    onToggle={() => toggle(row.branch.id)}
                  />
                </li>
              );
            })}
          </ul>
        </section>
      )}
    </div>
  );
}

function parentsAmong(branches: readonly Branch[]): readonly string[] {
  const named = new Set(branches.map(({ parent_id }) => parent_id));
  return branches.filter(({ id }) => named.has(id)).map(({ id }) => id);
}

const without = (set: ReadonlySet<string>, id: string) => new Set([...set].filter((one) => one !== id));

function summaryOf(branches: readonly Branch[], endpoints: readonly Endpoint[], found: number | null): string {
  const awake = endpoints.filter(({ current_state }) => current_state === 'active').length;
  const total = branches.length.toLocaleString('en');
  if (found !== null) return `${found.toLocaleString('en')} of ${total} branches`;
  return `${total} ${branches.length === 1 ? 'branch' : 'branches'}, ${awake} of ${endpoints.length} computes awake`;
}

const columns: readonly (readonly [SortKey, string])[] = [
  ['name', 'Branch'],
  ['state', 'Compute'],
  ['size', 'Size'],
  ['data', 'Data'],
  ['used', 'Last used'],
];

interface HeadProps {
  readonly order: TreeOrder | null;
  readonly onOrder: (order: TreeOrder | null) => void;
}

/** Ascending, descending, and then the order in which branches were made. */
function Head({ order, onOrder }: HeadProps) {
  const next = (by: SortKey): TreeOrder | null => {
    if (order?.by !== by) return { by, isDescending: false };
    return order.isDescending ? null : { by, isDescending: true };
  };
  return (
    <div className="branch-columns">
      {columns.map(([by, text]) => (
        <button
          key={by}
          type="button"
          className={`column-${by}`}
          aria-pressed={order?.by === by}
          title={`Sort by ${text.toLowerCase()}`}
          onClick={() => onOrder(next(by))}
        >
          {text}
          {order?.by === by && <Icon name={order.isDescending ? 'down' : 'up'} />}
        </button>
      ))}
    </div>
  );
}
