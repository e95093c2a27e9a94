/** Postgres types by their numbers: a name for the head of a column, and how its values are shown and sorted. */

/** What a result says of one of its columns. */
export interface Field {
  readonly name: string;
  readonly dataTypeID: number;
  /** Its length or precision as Postgres stores them; -1 without any. */
  readonly dataTypeModifier?: number;
}

export type ValueKind = 'number' | 'boolean' | 'json' | 'bytes' | 'moment' | 'array' | 'text';

interface BuiltIn {
  readonly name: string;
  readonly kind: ValueKind;
  /** The number of the type of its arrays. */
  readonly array: number;
}

const builtIn = (name: string, kind: ValueKind, array: number): BuiltIn => ({ name, kind, array });

/** Those that people use in tables; the database is asked for the names of others. */
const builtIns: ReadonlyMap<number, BuiltIn> = new Map([
  [16, builtIn('bool', 'boolean', 1000)],
  [17, builtIn('bytea', 'bytes', 1001)],
  [18, builtIn('"char"', 'text', 1002)],
  [19, builtIn('name', 'text', 1003)],
  [20, builtIn('int8', 'number', 1016)],
  [21, builtIn('int2', 'number', 1005)],
  [23, builtIn('int4', 'number', 1007)],
  [25, builtIn('text', 'text', 1009)],
  [26, builtIn('oid', 'number', 1028)],
  [114, builtIn('json', 'json', 199)],
  [142, builtIn('xml', 'text', 143)],
  [650, builtIn('cidr', 'text', 651)],
  [700, builtIn('float4', 'number', 1021)],
  [701, builtIn('float8', 'number', 1022)],
  [790, builtIn('money', 'text', 791)],
  [829, builtIn('macaddr', 'text', 1040)],
  [869, builtIn('inet', 'text', 1041)],
  [1042, builtIn('char', 'text', 1014)],
  [1043, builtIn('varchar', 'text', 1015)],
  [1082, builtIn('date', 'moment', 1182)],
  [1083, builtIn('time', 'text', 1183)],
  [1114, builtIn('timestamp', 'moment', 1115)],
  [1184, builtIn('timestamptz', 'moment', 1185)],
  [1186, builtIn('interval', 'text', 1187)],
  [1266, builtIn('timetz', 'text', 1270)],
  [1560, builtIn('bit', 'text', 1561)],
  [1562, builtIn('varbit', 'text', 1563)],
  [1700, builtIn('numeric', 'number', 1231)],
  [2205, builtIn('regclass', 'text', 2210)],
  [2206, builtIn('regtype', 'text', 2211)],
  [2950, builtIn('uuid', 'text', 2951)],
  [3614, builtIn('tsvector', 'text', 3643)],
  [3802, builtIn('jsonb', 'json', 3807)],
  [3904, builtIn('int4range', 'text', 3905)],
  [3908, builtIn('tsrange', 'text', 3909)],
  [3910, builtIn('tstzrange', 'text', 3911)],
  [3912, builtIn('daterange', 'text', 3913)],
]);

const elements: ReadonlyMap<number, number> = new Map(
  [...builtIns].map(([typeId, { array }]): [number, number] => [array, typeId]),
);

/** Names of types that are not built in, by their numbers. */
export type TypeNames = ReadonlyMap<number, string>;

export const noTypeNames: TypeNames = new Map();

export const isBuiltIn = (typeId: number) => builtIns.has(typeId) || elements.has(typeId);

/** As Postgres writes it in a short form: `varchar(20)`, `int4[]`; empty for a type whose name is not known yet. */
export function typeName({ dataTypeID, dataTypeModifier }: Field, names: TypeNames): string {
  const element = elements.get(dataTypeID);
  const name = builtIns.get(element ?? dataTypeID)?.name;
  if (name === undefined) return names.get(dataTypeID) ?? '';
  return `${name}${modifierText(element ?? dataTypeID, dataTypeModifier ?? -1)}${element === undefined ? '' : '[]'}`;
}

/** Lengths are stored with the four bytes of a header, and both numbers of a numeric in one. */
function modifierText(typeId: number, modifier: number): string {
  if (modifier < 0) return '';
  if (typeId === 1700) return `(${((modifier - 4) >> 16) & 0xffff},${(modifier - 4) & 0x7ff})`;
  if (typeId === 1042 || typeId === 1043) return `(${modifier - 4})`;
  return [1083, 1114, 1184, 1266, 1560, 1562].includes(typeId) ? `(${modifier})` : '';
}

export function kindOf(typeId: number, names: TypeNames = noTypeNames): ValueKind {
  if (elements.has(typeId) || names.get(typeId)?.endsWith('[]')) return 'array';
  return builtIns.get(typeId)?.kind ?? 'text';
}

/** What the elements of an array are. */
export const elementKind = (typeId: number): ValueKind => kindOf(elements.get(typeId) ?? 0);
