/** Files with all rows of a statement, also of those that are not in the browser. */
import { useRef, useState } from 'react';
import { exportRows } from '../api/sql.ts';
import { download } from '../ui/download.ts';
import type { MenuItem } from '../ui/menu.tsx';
import { notify } from '../ui/notices.ts';

export interface Export {
  readonly items: readonly MenuItem[];
  /** Bytes that have come so far; null while nothing is exported. */
  readonly received: number | null;
  readonly cancel: () => void;
}

export function useExport(uri: string, query: string, fileName: string): Export {
  const [received, setReceived] = useState<number | null>(null);
  const aborting = useRef(new AbortController());
  const run = async (format: 'csv' | 'json') => {
    aborting.current = new AbortController();
    const { signal } = aborting.current;
    setReceived(0);
    try {
      download(`${fileName}.${format}`, await exportRows(uri, query, format, { signal, onBytes: setReceived }));
    } catch (error) {
      if (!signal.aborted) notify('bad', `Not exported: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      setReceived(null);
    }
  };
  const item = (format: 'csv' | 'json', label: string) => ({
    label,
    isDisabled: received !== null,
    onSelect: () => void run(format),
  });
  return {
    items: [item('csv', 'All rows as CSV'), item('json', 'All rows as JSON')],
    received,
    cancel: () => aborting.current.abort(),
  };
}
