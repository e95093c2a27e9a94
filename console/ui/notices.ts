/** Short messages that appear at the edge and go away. A store of its own, so that anything can send one. */

export interface Notice {
  readonly id: number;
  readonly tone: 'good' | 'bad';
  readonly text: string;
}

/** Long enough to read; failures stay until they are dismissed. */
const shownMs = 5_000;

let notices: readonly Notice[] = [];
let nextId = 1;
const listeners = new Set<() => void>();

function change(next: readonly Notice[]): void {
  notices = next;
  for (const listener of listeners) listener();
}

export function notify(tone: Notice['tone'], text: string): void {
  const notice = { id: nextId, tone, text };
  nextId += 1;
  change([...notices.slice(-3), notice]);
  if (tone === 'good') setTimeout(() => dismiss(notice.id), shownMs);
}

export function dismiss(id: number): void {
  change(notices.filter((notice) => notice.id !== id));
}

export const getNotices = () => notices;

export function watchNotices(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
