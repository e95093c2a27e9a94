/** SQL in the shape that people expect of it: one clause on a line, keywords as they were written. */
import { formatDialect, postgresql } from 'sql-formatter';

export function formatSql(text: string): string {
  return formatDialect(text, { dialect: postgresql, keywordCase: 'preserve', tabWidth: 2, linesBetweenQueries: 1 });
}
