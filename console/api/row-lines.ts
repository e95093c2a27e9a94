/** Rows that come as lines of JSON, however many: what they are of, and then a line for each. */

export interface RowLines {
  /** The first line. */
  readonly head: readonly unknown[];
  readonly rows: readonly (readonly (string | null)[])[];
  /** There are more than a page should keep. */
  readonly hasMore: boolean;
}

/** As much as a page should keep: characters for its memory, rows because browsers draw no page that is higher. */
const keptMax = { length: 200_000_000, rows: 1_000_000 };

export async function readRowLines(body: ReadableStream<Uint8Array>): Promise<RowLines> {
  const rows: (readonly (string | null)[])[] = [];
  let head: readonly unknown[] | undefined;
  let received = 0;
  for await (const lines of linesOf(body)) {
    for (const line of lines) {
      if (head === undefined) head = JSON.parse(line) as unknown[];
      else rows.push(JSON.parse(line) as (string | null)[]);
      received += line.length;
    }
    if (received > keptMax.length || rows.length > keptMax.rows) return { head: head ?? [], rows, hasMore: true };
  }
  return { head: head ?? [], rows, hasMore: false };
}

/** Whole lines, as many as have come together. A caller that stops ends the request. */
async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string[]> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      yield lines;
    }
  } catch (error) {
    throw error instanceof DOMException ? error : new Error('The answer broke off before its end.');
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
