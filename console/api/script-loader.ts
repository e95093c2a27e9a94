/**
 * Scripts that a page loads when it first needs them. One that is asked for while the server is away comes when it is
 * back. One that the server does not have any more belongs to an older build, so the page is loaded anew, once.
 */

const lookAgainMs = 1_000;
/** A reload that has not helped is not repeated for so long. */
const reloadAgainMs = 60_000;

/** The browser, as far as loading a script needs it. */
export interface Surroundings {
  readonly isReachable: () => Promise<boolean>;
  readonly setOffline: (value: boolean) => void;
  readonly reload: () => void;
  readonly wait: (ms: number) => Promise<void>;
  readonly now: () => number;
  /** Outlives a reload of the page. */
  readonly memory: {
    getItem(name: string): string | null;
    setItem(name: string, value: string): void;
  };
}

export async function loadScriptIn<T>(around: Surroundings, load: () => Promise<T>): Promise<T> {
  for (let wasAway = false; ; ) {
    try {
      const script = await load();
      if (wasAway) around.setOffline(false);
      return script;
    } catch (error) {
      if (!(await around.isReachable())) {
        wasAway = true;
        around.setOffline(true);
        await around.wait(lookAgainMs);
      } else if (wasAway) {
        // It has come back between the two questions, and deserves the first one again.
        wasAway = false;
      } else {
        return reloadOnce(around, error);
      }
    }
  }
}

/** Some browsers remember that a script could not be loaded; a new page has forgotten it, too. */
function reloadOnce({ memory, now, reload }: Surroundings, error: unknown): Promise<never> {
  // The browser's message names the script, and the name of a script changes with its content.
  const name = `catnap-reloaded-for ${error}`;
  if (now() - Number(memory.getItem(name) ?? Number.NEGATIVE_INFINITY) < reloadAgainMs) {
    throw new Error('A script of this page could not be loaded, although the server answers. Reload the page.');
  }
  memory.setItem(name, String(now()));
  reload();
  return new Promise<never>(() => {});
}
