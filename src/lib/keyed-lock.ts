/**
 * Locks by name inside one process: exclusive, or shared by many. First come, first served, so a stream of sharers
 * never starves an exclusive waiter. A caller that takes several names takes endpoints before branches.
 */
interface Queued {
  readonly shared: boolean;
  readonly enter: () => void;
}

interface Door {
  inside: number;
  insideShared: boolean;
  readonly waiting: Queued[];
}

export class KeyedLock {
  readonly #doors = new Map<string, Door>();

  exclusive<T>(key: string, work: () => Promise<T>): Promise<T> {
    return this.#run(key, false, work);
  }

  shared<T>(key: string, work: () => Promise<T>): Promise<T> {
    return this.#run(key, true, work);
  }

  /** All of them, in one order for every caller, so that two callers never wait for each other. */
  exclusiveAll<T>(keys: readonly string[], work: () => Promise<T>): Promise<T> {
    const [first, ...rest] = [...new Set(keys)].sort();
    return first === undefined ? work() : this.exclusive(first, () => this.exclusiveAll(rest, work));
  }

  /** Names that are held or waited for; 0 when all is quiet. */
  get size(): number {
    return this.#doors.size;
  }

  async #run<T>(key: string, shared: boolean, work: () => Promise<T>): Promise<T> {
    const door = this.#doors.get(key) ?? { inside: 0, insideShared: false, waiting: [] };
    this.#doors.set(key, door);
    await new Promise<void>((enter) => {
      door.waiting.push({ shared, enter });
      this.#admit(door);
    });
    try {
      return await work();
    } finally {
      door.inside--;
      this.#admit(door);
      if (door.inside === 0) this.#doors.delete(key);
    }
  }

  #admit(door: Door): void {
    for (let next = door.waiting[0]; next; next = door.waiting[0]) {
      if (door.inside > 0 && !(door.insideShared && next.shared)) return;
      door.waiting.shift();
      door.inside++;
      door.insideShared = next.shared;
      next.enter();
    }
  }
}
