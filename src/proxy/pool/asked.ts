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
