/** What a pooled server can be asked, as numbers that go into a queue. */

/** What was asked; the numbers only have to differ. */
export const asked = {
  parse: 1,
  bind: 2,
  describe: 3,
  execute: 4,
  close: 5,
  sync: 6,
  query: 7,
  /** The client's end of a COPY: no answer of its own. */
  copyEnd: 8,
} as const;
/** What was asked, without the flags. */
export const kindMask = 15;
/** The server's answer is not for the client. */
export const hidden = 16;
/** Answered here, in its turn. */
export const local = 32;

/** How many ReadyForQuery for the client the requests from `start` on end in. */
export function countReady(kinds: readonly number[], start: number): number {
  let count = 0;
  for (let i = start; i < kinds.length; i++) {
    const kind = kinds[i] ?? 0;
    const plain = kind & kindMask;
    if ((plain === asked.sync || plain === asked.query) && (kind & hidden) === 0) count += 1;
  }
  return count;
}
