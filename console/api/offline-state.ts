/** Whether the server answered last time. */

let isOffline = false;
const listeners = new Set<() => void>();

export function setOffline(value: boolean): void {
  if (isOffline === value) return;
  isOffline = value;
  for (const listener of listeners) listener();
}

export const getOffline = () => isOffline;

export function watchOffline(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
