/**
 * Where the tables of a diagram stand. Tables that refer to no other are on the left, and each other one is a column to
 * the right of everything that it refers to, so that all lines run one way; a circle is cut where it is entered.
 */

export interface Reference {
  /** Names with their schema. */
  readonly from: string;
  readonly to: string;
  readonly columns: readonly string[];
  readonly references: readonly string[];
}

export interface Box {
  readonly name: string;
  /** Those that take part in a reference, from here or to here. */
  readonly columns: readonly string[];
  readonly x: number;
  readonly y: number;
  readonly height: number;
}

export interface Layout {
  readonly boxes: readonly Box[];
  /** Paths of an SVG, one for each reference. */
  readonly lines: readonly string[];
  readonly width: number;
  readonly height: number;
}

export const boxWidth = 190;
const headHeight = 30;
const lineHeight = 19;
const padding = 8;
const gap = { x: 90, y: 22 };

export function layOut(references: readonly Reference[]): Layout {
  const names = [...new Set(references.flatMap(({ from, to }) => [to, from]))].sort();
  const ranks = ranksOf(names, references);
  const bottoms: number[] = [];
  const boxes = new Map<string, Box>();
  for (const name of inOrder(names, ranks, references)) {
    const rank = ranks.get(name) ?? 0;
    const columns = columnsOf(name, references);
    const height = headHeight + columns.length * lineHeight + padding;
    const y = bottoms[rank] ?? 0;
    boxes.set(name, { name, columns, x: rank * (boxWidth + gap.x), y, height });
    bottoms[rank] = y + height + gap.y;
  }
  const placed = [...boxes.values()];
  return {
    boxes: placed,
    lines: references.map((reference) => lineOf(reference, boxes)),
    width: Math.max(...placed.map(({ x }) => x + boxWidth), 0),
    height: Math.max(...placed.map(({ y, height }) => y + height), 0),
  };
}

function ranksOf(names: readonly string[], references: readonly Reference[]): Map<string, number> {
  const ranks = new Map<string, number>();
  const entered = new Set<string>();
  const rankOf = (name: string): number => {
    const known = ranks.get(name);
    if (known !== undefined) return known;
    entered.add(name);
    const referred = references.filter(({ from, to }) => from === name && !entered.has(to));
    const rank = Math.max(-1, ...referred.map(({ to }) => rankOf(to))) + 1;
    entered.delete(name);
    ranks.set(name, rank);
    return rank;
  };
  for (const name of names) rankOf(name);
  return ranks;
}

/** By column, and in each near what they refer to, which keeps lines short. */
function inOrder(names: readonly string[], ranks: Map<string, number>, references: readonly Reference[]): string[] {
  const places = new Map<string, number>();
  return groupsOf(names, ranks).flatMap((column) => {
    const wish = (name: string) => {
      const known = references.flatMap(({ from, to }) => (from === name ? (places.get(to) ?? []) : []));
      return known.length === 0 ? 0 : known.reduce((sum, place) => sum + place, 0) / known.length;
    };
    const ordered = [...column].sort((a, b) => wish(a) - wish(b) || (a < b ? -1 : 1));
    for (const [place, name] of ordered.entries()) places.set(name, place);
    return ordered;
  });
}

function groupsOf(names: readonly string[], ranks: Map<string, number>): string[][] {
  const groups: string[][] = [];
  for (const name of names) {
    const rank = ranks.get(name) ?? 0;
    groups[rank] = [...(groups[rank] ?? []), name];
  }
  return groups;
}

function columnsOf(name: string, references: readonly Reference[]): string[] {
  const targets = references.flatMap(({ to, references: columns }) => (to === name ? columns : []));
  const own = references.flatMap(({ from, columns }) => (from === name ? columns : []));
  return [...new Set([...targets, ...own])];
}

/** From the first column that refers to the first that is referred to. */
function lineOf({ from, to, columns, references }: Reference, boxes: ReadonlyMap<string, Box>): string {
  const [start, end] = [boxes.get(from), boxes.get(to)];
  if (start === undefined || end === undefined) throw new Error('BUG: a table of a reference has no place');
  const y1 = heightOf(start, columns[0]);
  const y2 = heightOf(end, references[0]);
  const x2 = end.x + boxWidth;
  // Around the right side: the table refers to itself, or a circle was cut here.
  if (start.x <= end.x) {
    const x1 = start.x + boxWidth;
    const bend = Math.max(x1, x2) + gap.x / 2;
    return `M${x1} ${y1}C${bend} ${y1} ${bend} ${y2} ${x2} ${y2}`;
  }
  const bend = gap.x / 2;
  return `M${start.x} ${y1}C${start.x - bend} ${y1} ${x2 + bend} ${y2} ${x2} ${y2}`;
}

function heightOf(box: Box, column: string | undefined): number {
  const line = Math.max(0, box.columns.indexOf(column ?? ''));
  return box.y + headHeight + line * lineHeight + lineHeight / 2;
}
