/** Whether a statement begins or ends a transaction, judged by its first words. */

/** White space and comments; a comment within a comment is rare here, and hides a BEGIN from us, not from Postgres. */
const blank = String.raw`(?:\s|--[^\n]*(?:\n|$)|/\*(?:[^*]|\*(?!/))*\*/)`;
const begins = new RegExp(`^${blank}*(?:begin|start${blank}+transaction)(?![\\w$])`, 'i');
const ends = new RegExp(`^${blank}*(?:commit|end|abort|rollback|prepare${blank}+transaction)(?![\\w$])`, 'i');
/** Goes back to a savepoint, and stays in the transaction. */
const rollsBackTo = new RegExp(`^${blank}*rollback(?:${blank}+(?:work|transaction))?${blank}+to(?![\\w$])`, 'i');

/** Longer comments in front of a statement are not worth reading. */
const charactersMax = 10_000;

export function transactionStep(query: string): 'begin' | 'end' | null {
  const start = query.slice(0, charactersMax);
  if (begins.test(start)) return 'begin';
  return ends.test(start) && !rollsBackTo.test(start) ? 'end' : null;
}
