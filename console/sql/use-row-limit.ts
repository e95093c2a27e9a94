/** How many rows a statement may answer with, as chosen in this browser. */
import { useState } from 'react';

/** 0 is no limit. */
export const rowLimits: readonly number[] = [100, 1_000, 10_000, 0];

const usual = 1_000;
const key = 'catnap-row-limit';

export function useRowLimit() {
  const [limit, setLimit] = useState(() => {
    const kept = Number(localStorage.getItem(key) ?? usual);
    return rowLimits.includes(kept) ? kept : usual;
  });
  const change = (next: number) => {
    setLimit(next);
    localStorage.setItem(key, String(next));
  };
  return [limit, change] as const;
}
