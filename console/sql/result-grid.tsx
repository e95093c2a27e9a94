/** Rows as a grid. Only so many are drawn at first, as a browser takes seconds for ten thousand; more on demand. */
import { useState } from 'react';
import type { SqlResult } from '../api/sql.ts';
import { Button } from '../ui/button.tsx';
import { count } from '../ui/format.ts';

const rowsDrawn = 500;

export function ResultGrid({ result }: { readonly result: SqlResult }) {
  const [shown, setShown] = useState(rowsDrawn);
  if (result.fields.length === 0) {
    return (
      <p className="result-note" role="status">
        {result.command}: {count(result.rowCount ?? 0, 'row')}
      </p>
    );
  }
  const drawn = result.rows.slice(0, shown);
  return (
    <>
      <p className="result-note" role="status">
        {count(result.rows.length, 'row')}
        {result.rows.length > shown && `, the first ${shown} shown`}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must reach it. */}
      <section className="grid-wrap" tabIndex={0} aria-label="Result">
        <table className="grid">
          <thead>
            <tr>
              {result.fields.map((field, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: two columns may have one name, and none moves.
                <th key={index} scope="col">
                  {field.name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {drawn.map((row, rowIndex) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: rows have no other name.
              <tr key={rowIndex}>
                {row.map((value, index) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: as above.
                  <td key={index} title={value ?? undefined}>
                    {value === null ? <span className="null">null</span> : value}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {result.rows.length > shown && (
        <div>
          <Button small onClick={() => setShown(shown + rowsDrawn)}>
            Show more
          </Button>
        </div>
      )}
    </>
  );
}
