/** Whether the stream of changes is open. While it is, pages need to ask less often by themselves. */

let isLive = false;

export function setLive(value: boolean): void {
  isLive = value;
}

const pace = { quick: { live: 15_000, alone: 2_000 }, slow: { live: 30_000, alone: 10_000 } } as const;

/** The stream reports operations only; pages poll for what changes without one, less often. */
export function pollMs(kind: keyof typeof pace): number {
  return pace[kind][isLive ? 'live' : 'alone'];
}
