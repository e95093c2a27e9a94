/** The lines of a schema diff that say something: without the headings that pg_dump writes above each object. */

const isHeading = (line: string) => /^[-+ ]--( |$)/.test(line) || line.startsWith('+++ ');
const isBlank = (line: string | undefined) => line === undefined || /^[-+ ]?$/.test(line);

export function diffLines(text: string): readonly string[] {
  const kept: string[] = [];
  for (const line of text.split('\n')) {
    if (!isHeading(line) && !(isBlank(line) && isBlank(kept.at(-1)))) kept.push(line);
  }
  return kept;
}
