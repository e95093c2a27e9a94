/** What was run, newest first, kept in this browser for each project. */

export interface HistoryEntry {
  readonly query: string;
  readonly at: string;
}

const entriesMax = 50;
/** Longer ones are not kept. */
const queryLengthMax = 20_000;
const keyOf = (projectId: string) => `catnap-history-${projectId}`;

export function readHistory(projectId: string): readonly HistoryEntry[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(keyOf(projectId)) ?? '[]');
    return Array.isArray(kept) ? kept.filter(isEntry) : [];
  } catch {
    return [];
  }
}

export function addToHistory(projectId: string, query: string): readonly HistoryEntry[] {
  if (query.length > queryLengthMax) return readHistory(projectId);
  const others = readHistory(projectId).filter((entry) => entry.query !== query);
  const next = [{ query, at: new Date().toISOString() }, ...others].slice(0, entriesMax);
  localStorage.setItem(keyOf(projectId), JSON.stringify(next));
  return next;
}

function isEntry(value: unknown): value is HistoryEntry {
  return typeof value === 'object' && value !== null && 'query' in value && 'at' in value;
}
