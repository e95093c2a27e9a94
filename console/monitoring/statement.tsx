/** A statement in a row of a table: its beginning on one line; a click shows all of it. */
import { useState } from 'react';
import { CopyButton } from '../ui/bits.tsx';

export function Statement({ text }: { readonly text: string }) {
  const [isOpen, setOpen] = useState(false);
  if (isOpen) {
    return (
      <div className="statement-open">
        <pre className="code-block wrapped">{text}</pre>
        <div className="row">
          <CopyButton text={text} label="Copy the statement">
            Copy
          </CopyButton>
          <button type="button" className="button quiet small" onClick={() => setOpen(false)}>
            Show less
          </button>
        </div>
      </div>
    );
  }
  return (
    <button type="button" className="statement" title="Show the whole statement" onClick={() => setOpen(true)}>
      <code>{text.replaceAll(/\s+/g, ' ')}</code>
    </button>
  );
}
