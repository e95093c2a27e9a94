/** The wire form of single values: whole seconds, and no key for what is absent. */

/** `YYYY-MM-DDTHH:MM:SSZ`. */
export function time(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`;
}

export const optionalTime = (date: Date | null) => (date === null ? null : time(date));

type Present<T> = { [K in keyof T]?: Exclude<T[K], null | undefined> };

/** Leaves out the keys whose value is null or undefined. */
export function present<T extends object>(values: T): Present<T> {
  const kept: Present<T> = {};
  for (const key in values) {
    const value = values[key];
    if (value !== null && value !== undefined) kept[key] = value as Exclude<T[typeof key], null | undefined>;
  }
  return kept;
}
