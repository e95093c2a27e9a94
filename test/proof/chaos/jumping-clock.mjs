/**
 * Loaded into each of Catnap's processes by an episode: their clock is off by as many milliseconds as the file says
 * that CHAOS_CLOCK names. What measures time that passes is left alone, as it is when somebody sets a machine's clock.
 */
import { readFileSync, statSync } from 'node:fs';

const path = process.env.CHAOS_CLOCK;
const RealDate = Date;
const realNow = RealDate.now.bind(RealDate);
let [readAt, changedAt, offset] = [0, 0, 0];

function now() {
  const real = realNow();
  if (real - readAt < 50) return real + offset;
  readAt = real;
  try {
    const { mtimeMs } = statSync(path);
    if (mtimeMs !== changedAt) {
      changedAt = mtimeMs;
      offset = Number(readFileSync(path, 'utf8'));
    }
  } catch {
    offset = 0;
  }
  return real + offset;
}

if (path !== undefined) {
  globalThis.Date = class JumpingDate extends RealDate {
    constructor(...words) {
      if (words.length === 0) super(now());
      else super(...words);
    }

    static now() {
      return now();
    }
  };
}
