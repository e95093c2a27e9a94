/** Work that callers who meet do once: whoever comes while it is under way gets the result of the first. */
export class SharedWork {
  readonly #underWay = new Map<string, Promise<void>>();

  join(name: string, work: () => Promise<void>): Promise<void> {
    const joined = this.#underWay.get(name);
    if (joined) return joined;
    const begun = work().finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, begun);
    return begun;
  }
}
