/** The whole value of one cell: JSON with an indent, arrays as lists, bytes as a dump, and long text with its lines. */
import { useState } from 'react';
import { CopyButton } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { bytes, count } from '../ui/format.ts';
import type { Column } from './columns.ts';
import { byteCount, displayText, hexDump, indentJson, type Nested, parseArray, type Value } from './values.ts';

interface CellViewerProps {
  readonly column: Column;
  readonly row: number;
  readonly value: Value;
  /** The same column of the row before; absent in the first. */
  readonly onPrevious: (() => void) | undefined;
  readonly onNext: (() => void) | undefined;
  readonly onClose: () => void;
}

export function CellViewer({ column, row, value, onPrevious, onNext, onClose }: CellViewerProps) {
  const [isRaw, setRaw] = useState(false);
  const view = value === null ? null : viewOf(value, column);
  return (
    <Dialog title={column.name} onClose={onClose} wide>
      <div className="dialog-body cell-viewer">
        <p className="hint">
          {[`Row ${row + 1}`, column.typeName, view?.size]
            .filter((text) => text !== undefined && text !== '')
            .join(' · ')}
        </p>
        {value === null || view === null ? (
          <p className="null">NULL</p>
        ) : value === '' ? (
          <p className="hint">An empty string.</p>
        ) : isRaw || view.kind === 'text' ? (
          <pre className="cell-text">{displayText(value, column.kind)}</pre>
        ) : view.kind === 'array' ? (
          <Items items={view.items} />
        ) : (
          <pre className="cell-code">{view.text}</pre>
        )}
        {view?.note !== undefined && !isRaw && <p className="hint">{view.note}</p>}
      </div>
      <footer>
        {view !== null && view.kind !== 'text' && (
          <Button small aria-pressed={isRaw} onClick={() => setRaw(!isRaw)}>
            {isRaw ? 'Formatted' : 'As stored'}
          </Button>
        )}
        <Button small disabled={onPrevious === undefined} onClick={onPrevious}>
          Previous row
        </Button>
        <Button small disabled={onNext === undefined} onClick={onNext}>
          Next row
        </Button>
        <CopyButton text={displayText(value ?? '', column.kind)} label="Copy the value">
          Copy
        </CopyButton>
      </footer>
    </Dialog>
  );
}

type View = { readonly size: string; readonly note?: string } & (
  | { readonly kind: 'text' }
  | { readonly kind: 'code'; readonly text: string }
  | { readonly kind: 'array'; readonly items: readonly Nested[] }
);

/** More would be slow to draw, and nobody reads it. */
const bytesShownMax = 65_536;
const itemsShownMax = 2_000;

function viewOf(value: string, { kind }: Column): View {
  const length = byteCount(value);
  if (kind === 'bytes' && length !== null) {
    const isCut = length > bytesShownMax;
    const note = isCut ? `The first ${bytes(bytesShownMax)} are shown.` : undefined;
    return { kind: 'code', text: hexDump(value, bytesShownMax), size: bytes(length), ...(note && { note }) };
  }
  const items = kind === 'array' ? parseArray(value) : null;
  if (items !== null) {
    const note = items.length > itemsShownMax ? `The first ${itemsShownMax} are shown.` : undefined;
    return {
      kind: 'array',
      items: items.slice(0, itemsShownMax),
      size: count(items.length, 'element'),
      ...(note && { note }),
    };
  }
  const size = count([...value].length, 'character');
  // Text that holds JSON reads better as such too.
  const json = indentJson(value);
  return json === null ? { kind: 'text', size } : { kind: 'code', text: json, size };
}

function Items({ items }: { readonly items: readonly Nested[] }) {
  return (
    <ol className="cell-items">
      {items.map((item, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: elements have no other name, and none moves.
        <li key={at}>
          {item === null ? (
            <span className="null">NULL</span>
          ) : typeof item === 'string' ? (
            <span className="cell-item">{item}</span>
          ) : (
            <Items items={item} />
          )}
        </li>
      ))}
    </ol>
  );
}
