/** The tree of branches as the lines that are on the page: collapsed, searched, sorted. */
import type { Branch, Endpoint } from '../api/generated.ts';
import { groupBy } from '../ui/grouped.ts';

export interface TreeRow {
  readonly branch: Branch;
  /** 0 for one without a parent in the list. */
  readonly depth: number;
  readonly childCount: number;
  readonly isCollapsed: boolean;
  readonly primary: Endpoint | undefined;
  readonly replicas: readonly Endpoint[];
  readonly parentName: string | undefined;
  /** By a search, in which branches do not stand below their parents. */
  readonly isFound: boolean;
}

export const sortKeys = ['name', 'state', 'size', 'data', 'used'] as const;
export type SortKey = (typeof sortKeys)[number];

export interface TreeOrder {
  readonly by: SortKey;
  readonly isDescending: boolean;
}

export interface TreeWish {
  readonly words: string;
  /** Null: in the order in which branches were made. */
  readonly order: TreeOrder | null;
  readonly collapsed: ReadonlySet<string>;
}

/** One pass over each list, whatever the number of branches. */
export function treeRows(
  branches: readonly Branch[],
  endpoints: readonly Endpoint[],
  { words, order, collapsed }: TreeWish,
): readonly TreeRow[] {
  const byId = new Map(branches.map((branch) => [branch.id, branch]));
  const computes = groupBy(endpoints, ({ branch_id }) => branch_id);
  // A parent that is not in the list (it was deleted) makes its children stand at the top.
  const children = groupBy(branches, ({ parent_id }) => (byId.has(parent_id ?? '') ? parent_id : undefined));
  const rowOf = (branch: Branch, depth: number, isFound = false): TreeRow => {
    const own = computes.get(branch.id) ?? [];
    return {
      branch,
      depth,
      childCount: children.get(branch.id)?.length ?? 0,
      isCollapsed: collapsed.has(branch.id),
      primary: own.find(({ type }) => type === 'read_write'),
      replicas: own.filter(({ type }) => type === 'read_only'),
      parentName: byId.get(branch.parent_id ?? '')?.name,
      isFound,
    };
  };
  const sorted = (rows: readonly TreeRow[]) => (order === null ? rows : [...rows].sort(comparing(order)));

  const wanted = words.trim().toLowerCase();
  if (wanted !== '') {
    const found = branches.filter((branch) => matches(branch, computes.get(branch.id) ?? [], wanted));
    return sorted(found.map((branch) => rowOf(branch, 0, true)));
  }
  const rows: TreeRow[] = [];
  // A stack of its own: a chain of a thousand branches must not end the page.
  const waiting = sorted((children.get(undefined) ?? []).map((branch) => rowOf(branch, 0))).toReversed();
  for (let row = waiting.pop(); row !== undefined; row = waiting.pop()) {
    rows.push(row);
    if (row.isCollapsed || row.childCount === 0) continue;
    const { depth } = row;
    const below = (children.get(row.branch.id) ?? []).map((branch) => rowOf(branch, depth + 1));
    waiting.push(...sorted(below).toReversed());
  }
  return rows;
}

/** By the ids too, which people paste from logs and connection strings. */
const matches = ({ name, id }: Branch, computes: readonly Endpoint[], wanted: string) =>
  [name, id, ...computes.flatMap((compute) => [compute.id, compute.name ?? ''])].some((text) =>
    text.toLowerCase().includes(wanted),
  );

type Value = number | string;

const values: Readonly<Record<SortKey, (row: TreeRow) => Value>> = {
  name: ({ branch }) => branch.name.toLowerCase(),
  state: ({ primary }) => primary?.current_state ?? '',
  size: ({ primary }) => primary?.autoscaling_limit_max_cu ?? 0,
  data: ({ branch }) => branch.logical_size ?? 0,
  used: ({ primary }) => primary?.last_active ?? '',
};

function comparing({ by, isDescending }: TreeOrder): (a: TreeRow, b: TreeRow) => number {
  const read = values[by];
  return (a, b) => {
    const [x, y] = [read(a), read(b)];
    const ascending = typeof x === 'number' && typeof y === 'number' ? x - y : compareTexts(String(x), String(y));
    return isDescending ? -ascending : ascending;
  };
}

/** `pr-9` before `pr-10`. */
const compareTexts = new Intl.Collator('en', { numeric: true }).compare;
