/** What a run has found, each kind of finding once, and how often. */
export class Findings {
  readonly #found = new Map<string, { count: number; readonly first: string }>();

  /** `what` is the same for the same defect; `example` is the input that showed it. */
  add(what: string, example: string): void {
    const known = this.#found.get(what);
    if (known !== undefined) known.count++;
    else {
      this.#found.set(what, { count: 1, first: example });
      process.stdout.write(`found: ${what}\n  ${example}\n`);
    }
  }

  get count(): number {
    return this.#found.size;
  }

  list(): string[] {
    return [...this.#found].map(([what, { count, first }]) => `${what} (${count} times), first by ${first}`);
  }
}

/** Prints at most every ten seconds, so that a long run shows that it lives. */
export function createProgress(name: string): (state: () => string) => void {
  let last = performance.now();
  return (state) => {
    if (performance.now() - last < 10_000) return;
    last = performance.now();
    process.stdout.write(`${name}: ${state()}\n`);
  };
}
