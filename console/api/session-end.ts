/** Why the page asks to sign in again: kept from the moment at which the server refused the sign-in. */

let isEnded = false;
const listeners = new Set<() => void>();

export function setSessionEnded(value: boolean): void {
  if (isEnded === value) return;
  isEnded = value;
  for (const listener of listeners) listener();
}

export const getSessionEnded = () => isEnded;

export function watchSessionEnd(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
