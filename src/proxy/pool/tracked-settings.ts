/**
 * The settings that a pooled client keeps from one transaction to the next although its server changes: those that
 * servers report to clients and that drivers rely on. Every other startup parameter is sent to the server at login, so
 * clients that differ in one of those have different pools.
 */
import { forwardedParameters } from '../compute/session.ts';
import { FrameBuffer } from '../protocol/wire.ts';

/** As servers report them; clients may write the names in any case. */
export const trackedNames = [
  'client_encoding',
  'DateStyle',
  'TimeZone',
  'standard_conforming_strings',
  'IntervalStyle',
  'application_name',
] as const;
const indexByName = new Map<string, number>(trackedNames.map((name, index) => [name.toLowerCase(), index]));
export const clientEncodingIndex = 0;
export const applicationNameIndex = trackedNames.length - 1;

/** Values in the order of `trackedNames`. An array is never changed, only replaced. */
export type TrackedValues = readonly string[];

export function trackedIndex(name: string): number | undefined {
  return indexByName.get(name.toLowerCase());
}

export function withValue(values: TrackedValues, index: number, value: string): TrackedValues {
  if (values[index] === value) return values;
  const changed = [...values];
  changed[index] = value;
  return changed;
}

export interface PooledParameters {
  /** For logging in to servers: user, database, and the parameters that are not tracked. */
  readonly login: ReadonlyMap<string, string>;
  /** The tracked settings that the client asks for, by index. */
  readonly wanted: ReadonlyMap<number, string>;
}

/** Divides the parameters of a startup packet. */
export function splitParameters(parameters: ReadonlyMap<string, string>): PooledParameters {
  const login = new Map<string, string>();
  const wanted = new Map<number, string>();
  for (const [name, value] of forwardedParameters(parameters)) {
    const index = trackedIndex(name);
    if (index === undefined) login.set(name, value);
    else wanted.set(index, value);
  }
  return { login, wanted };
}

/** The ParameterStatus messages that a server sent at login. */
export function readParameters(greeting: Buffer): { name: string; value: string }[] {
  const frames = new FrameBuffer();
  frames.push(greeting);
  const found: { name: string; value: string }[] = [];
  for (let message = frames.nextMessage(greeting.length); message; message = frames.nextMessage(greeting.length)) {
    const [name = '', value = ''] = message.body.toString('utf8').split('\0');
    if (message.type === 'S') found.push({ name, value });
  }
  return found;
}

/** The tracked values among the ParameterStatus messages that a server sent at login. */
export function readTrackedValues(greeting: Buffer): TrackedValues {
  const values: string[] = trackedNames.map(() => '');
  for (const { name, value } of readParameters(greeting)) {
    const index = trackedIndex(name);
    if (index !== undefined) values[index] = value;
  }
  return values;
}

/** The SQL that changes a server's values from one set to another; empty when they are equal. */
export function changeSql(from: TrackedValues, to: TrackedValues): string {
  if (from === to) return '';
  let sql = '';
  // This runs for every transaction, so the loop has no iterator.
  for (let index = 0; index < trackedNames.length; index++) {
    const value = to[index];
    if (value !== undefined && value !== from[index]) sql += `SET ${trackedNames[index]}=${quoted(value)};`;
  }
  return sql;
}

/** A literal that means the same with every value of standard_conforming_strings. */
function quoted(value: string): string {
  const text = value.replaceAll("'", "''");
  return text.includes('\\') ? ` E'${text.replaceAll('\\', '\\\\')}'` : `'${text}'`;
}

/** As Postgres stores an application name: everything that is not printable ASCII is replaced. */
export function cleanApplicationName(name: string): string {
  return name.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 63);
}
