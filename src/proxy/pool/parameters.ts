/**
 * The settings that a pooled client keeps from one transaction to the next although its server changes: those that
 * servers report and drivers rely on. Every other startup parameter is given to the server at its login, so clients
 * that differ in one have different pools.
 */
import { forwardedParameters } from '../compute/session.ts';

/** By the name that the server reports, and the name that clients may use in any case. */
export const trackedNames = [
  'client_encoding',
  'DateStyle',
  'TimeZone',
  'standard_conforming_strings',
  'IntervalStyle',
  'application_name',
] as const;
const indexByName = new Map<string, number>(trackedNames.map((name, at) => [name.toLowerCase(), at]));
export const applicationNameIndex = trackedNames.length - 1;

/** Values in the order of `trackedNames`. Never changed in place. */
export type Tracked = readonly string[];

export function trackedIndex(name: string): number | undefined {
  return indexByName.get(name.toLowerCase());
}

export function withValue(values: Tracked, at: number, value: string): Tracked {
  if (values[at] === value) return values;
  const changed = [...values];
  changed[at] = value;
  return changed;
}

export interface PooledParameters {
  /** For the login of servers: user, database, and what is not tracked. */
  readonly login: ReadonlyMap<string, string>;
  /** What the client wants of the tracked ones. */
  readonly wanted: ReadonlyMap<number, string>;
}

export function splitParameters(parameters: ReadonlyMap<string, string>): PooledParameters {
  const login = new Map<string, string>();
  const wanted = new Map<number, string>();
  for (const [name, value] of forwardedParameters(parameters)) {
    const at = trackedIndex(name);
    if (at === undefined) login.set(name, value);
    else wanted.set(at, value);
  }
  return { login, wanted };
}

/** SQL that takes a server from one set of values to another; empty when there is nothing to do. */
export function changeSql(from: Tracked, to: Tracked): string {
  if (from === to) return '';
  let sql = '';
  // Once for every transaction: no iterator.
  for (let at = 0; at < trackedNames.length; at++) {
    const value = to[at];
    if (value !== undefined && value !== from[at]) sql += `SET ${trackedNames[at]}=${quoted(value)};`;
  }
  return sql;
}

/** A literal that means the same whatever standard_conforming_strings says. */
function quoted(value: string): string {
  const text = value.replaceAll("'", "''");
  return text.includes('\\') ? ` E'${text.replaceAll('\\', '\\\\')}'` : `'${text}'`;
}

/** As Postgres keeps the name of an application: what is not printable ASCII is replaced. */
export function cleanApplicationName(name: string): string {
  return name.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 63);
}
