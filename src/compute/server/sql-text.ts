/** Quoting for statements that take no parameters (CREATE ROLE and the like). */

/** Postgres truncates longer names silently, so that two names could become one. */
const maxNameBytes = 63;

export function quoteIdentifier(name: string): string {
  const bytes = Buffer.from(name);
  // An unpaired surrogate cannot be encoded for the server.
  const isText = bytes.toString() === name && !name.includes('\0');
  if (bytes.length === 0 || bytes.length > maxNameBytes || !isText) {
    throw new Error(`not a name that Postgres can keep: ${JSON.stringify(name)}`);
  }
  return `"${name.replaceAll('"', '""')}"`;
}

/** Relies on standard_conforming_strings, on since Postgres 9.1; tenants cannot change it in our sessions. */
export function quoteLiteral(text: string): string {
  if (text.includes('\0')) throw new Error('a literal cannot hold a zero byte');
  return `'${text.replaceAll("'", "''")}'`;
}
