/** Rows that are read line by line, as they come in pieces that know nothing of lines. */
import { expect, test, vi } from 'vitest';
import { readRowLines } from '../../console/api/row-lines.ts';

const head = '[{"name":"id","dataTypeID":23}]\n';

/** These pieces of text; the last one may be the way in which the reply breaks. */
function bodyOf(pieces: readonly (string | Error)[], onCancel = () => {}): ReadableStream<Uint8Array> {
  const left = [...pieces];
  return new ReadableStream<Uint8Array>({
    pull(stream) {
      const piece = left.shift();
      if (piece === undefined) stream.close();
      else if (piece instanceof Error) stream.error(piece);
      else stream.enqueue(new TextEncoder().encode(piece));
    },
    cancel: onCancel,
  });
}

test('lines are put together from their pieces', async () => {
  expect(await readRowLines(bodyOf([`${head}["1"`, ',null]\n["2","ü', '\\n"]\n']))).toEqual({
    head: [{ name: 'id', dataTypeID: 23 }],
    rows: [
      ['1', null],
      ['2', 'ü\n'],
    ],
    hasMore: false,
  });
});

test('a reply that breaks off is no result', async () => {
  const body = bodyOf([`${head}["1"]\n`, new TypeError('network error')]);
  await expect(readRowLines(body)).rejects.toThrow('The answer broke off before its end.');
});

test('more rows than a page keeps end the request, and the result says that there are more', async () => {
  const onCancel = vi.fn();
  const { rows, hasMore } = await readRowLines(bodyOf([head, '[]\n'.repeat(1_000_001), '[]\n'], onCancel));
  expect([rows.length, hasMore]).toEqual([1_000_001, true]);
  expect(onCancel).toHaveBeenCalled();
});
