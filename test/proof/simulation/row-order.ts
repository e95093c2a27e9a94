/**
 * Rows that a statement returns in no order of its own come in that of their table's file, which depends on what ran
 * before the schedule, and ids are random. Such rows are put into the order in which the schedule came to know them, so
 * that it goes the same way whenever it is played.
 */
interface Row {
  readonly id?: unknown;
}

export class RowOrder {
  readonly #places: Map<unknown, number>;

  constructor(known: RowOrder | null = null) {
    this.#places = new Map(known === null ? [] : known.#places);
  }

  /** In place, since the driver's results are more than arrays. */
  arrange(statement: readonly string[], rows: Row[]): void {
    if (rows.length > 1 && !isOrdered(statement)) {
      const placeOf = ({ id }: Row) => this.#places.get(id) ?? Number.POSITIVE_INFINITY;
      rows.sort((one, other) => (placeOf(one) < placeOf(other) ? -1 : placeOf(one) > placeOf(other) ? 1 : 0));
    }
    for (const { id } of rows) {
      if (typeof id === 'string' && !this.#places.has(id)) this.#places.set(id, this.#places.size);
    }
  }
}

const known = new WeakMap<readonly string[], boolean>();

function isOrdered(statement: readonly string[]): boolean {
  const before = known.get(statement);
  if (before !== undefined) return before;
  const isSo = statement.some((part) => /order by/i.test(part));
  known.set(statement, isSo);
  return isSo;
}
