/** Flags of the whole page, for `useSyncExternalStore`. */

export interface WatchedFlag {
  readonly get: () => boolean;
  readonly set: (value: boolean) => void;
  readonly watch: (listener: () => void) => () => void;
}

function watchedFlag(): WatchedFlag {
  let current = false;
  const listeners = new Set<() => void>();
  return {
    get: () => current,
    set: (value) => {
      if (current === value) return;
      current = value;
      for (const listener of listeners) listener();
    },
    watch: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** Whether the server did not answer last time. */
export const offline = watchedFlag();

/** Why the page asks to sign in again: set at the moment at which the server refused the sign-in. */
export const sessionEnded = watchedFlag();
