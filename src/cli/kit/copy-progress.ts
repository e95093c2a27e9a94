/** Where the copy of a database is, in words. */
import type { ImportProgress } from './copy-parts.ts';
import { inUnits } from './units.ts';

const words: Readonly<Record<ImportProgress['phase'], string>> = {
  check: 'looking at',
  structure: 'making the schema of',
  rows: 'copying',
  indexes: 'making',
  changes: 'bringing changes up to',
  views: 'filling',
  rules: 'making',
  finish: 'finishing',
};

export function describeCopy({ phase, name, done, of, bytes, bytesOf }: ImportProgress): string {
  const place = of > 1 ? ` (${done + 1} of ${of})` : '';
  const volume = bytes === undefined || bytesOf === undefined ? '' : `, ${inUnits(bytes)} of about ${inUnits(bytesOf)}`;
  return `${words[phase]} ${name}${place}${volume} …`;
}
