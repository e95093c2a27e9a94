/**
 * From the text form of Postgres values to JSON text. Numbers and JSON are copied digit by digit. Used only for callers
 * that ask for typed values; the usual driver takes everything as text.
 */

const boolType = 16;
const jsonTypes: ReadonlySet<number> = new Set([114, 3802]);
/** int2, int4, float4, float8; int8 and numeric stay text, because a double cannot hold them. */
const numberTypes: ReadonlySet<number> = new Set([21, 23, 700, 701]);

/** Element types of the built-in array types; other arrays stay text. */
const elementTypes: ReadonlyMap<number, number> = new Map([
  [1000, 16], // bool
  [1001, 17], // bytea
  [1002, 18], // "char"
  [1003, 19], // name
  [1016, 20], // int8
  [1005, 21], // int2
  [1007, 23], // int4
  [1009, 25], // text
  [1028, 26], // oid
  [199, 114], // json
  [1021, 700], // float4
  [1022, 701], // float8
  [1014, 1042], // bpchar
  [1015, 1043], // varchar
  [1182, 1082], // date
  [1183, 1083], // time
  [1115, 1114], // timestamp
  [1185, 1184], // timestamptz
  [1187, 1186], // interval
  [1270, 1266], // timetz
  [1231, 1700], // numeric
  [2951, 2950], // uuid
  [1041, 869], // inet
  [651, 650], // cidr
  [1040, 829], // macaddr
  [3807, 3802], // jsonb
]);

export function jsonOfValue(text: string, typeId: number): string {
  if (typeId === boolType) return text === 't' ? 'true' : 'false';
  if (numberTypes.has(typeId)) return /^-?\d/.test(text) ? text : JSON.stringify(text);
  if (jsonTypes.has(typeId)) return text;
  const elementType = elementTypes.get(typeId);
  return elementType === undefined ? JSON.stringify(text) : jsonOfArray(text, elementType);
}

/** Array literals as Postgres prints them: `{1,NULL,{2}}`, `{"a b"}`, with bounds in front unless they start at 1. */
function jsonOfArray(literal: string, elementType: number): string {
  let json = '';
  // Bounds contain no brace: `[0:1]={1,2}`.
  for (let at = literal.indexOf('{'); at < literal.length && at >= 0; ) {
    const character = literal.charAt(at);
    if (character === '{' || character === '}' || character === ',') {
      json += character === '{' ? '[' : character === '}' ? ']' : ',';
      at += 1;
    } else if (character === '"') {
      const end = endOfQuoted(literal, at);
      json += jsonOfValue(literal.slice(at + 1, end).replace(/\\(.)/gs, '$1'), elementType);
      at = end + 1;
    } else {
      const end = endOfWord(literal, at);
      const whole = literal.slice(at, end);
      json += whole === 'NULL' ? 'null' : jsonOfValue(whole, elementType);
      at = end;
    }
  }
  return json;
}

function endOfWord(literal: string, from: number): number {
  let at = from;
  while (at < literal.length && !',{}'.includes(literal.charAt(at))) at += 1;
  return at;
}

function endOfQuoted(literal: string, from: number): number {
  let at = from + 1;
  while (at < literal.length && literal.charAt(at) !== '"') at += literal.charAt(at) === '\\' ? 2 : 1;
  return at;
}
