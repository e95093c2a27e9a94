/** One line on a terminal that is written over; nothing for programs, and where nobody looks. */
import type { Writable } from 'node:stream';

export interface ProgressLine {
  show(text: string): void;
  clear(): void;
}

export function progressLine(stderr: Writable): ProgressLine {
  const isSeen = 'isTTY' in stderr && stderr.isTTY === true;
  const write = (text: string) => (isSeen ? void stderr.write(`\r\u001b[2K${text}`) : undefined);
  return { show: write, clear: () => write('') };
}
