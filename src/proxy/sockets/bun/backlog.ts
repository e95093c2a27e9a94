/**
 * How many clients the kernel keeps for a listening socket until they are accepted. Bun asks for 512 and takes no other
 * number, but a second call of listen(2) on the same socket changes it.
 */
import { createRequire } from 'node:module';
import type { BunListener } from './api.ts';

/** The part of `bun:ffi` that is used here. */
interface ForeignFunctions {
  dlopen(library: string, symbols: object): { symbols: { listen(fd: number, backlog: number): number } };
}

const signature = { args: ['i32', 'i32'], returns: 'i32' };

/** Leaves the queue as it is where the C library is not the one of most systems. */
export function setBacklog(listener: BunListener, backlog: number): void {
  try {
    const { dlopen }: ForeignFunctions = createRequire(import.meta.url)('bun:ffi');
    dlopen('libc.so.6', { listen: signature }).symbols.listen(listener.fd, backlog);
  } catch {
    // 512 it is.
  }
}
