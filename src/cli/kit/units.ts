/** Sizes as people read them. */

/** Powers of 1024, with one digit behind the point. */
export function inUnits(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const step = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** step;
  return `${Number.isInteger(value) ? value : value.toFixed(1)} ${units[step]}`;
}
