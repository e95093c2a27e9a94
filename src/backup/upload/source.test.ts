import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { letRun } from '../../../test/helpers/eventually.ts';
import { fromMachine } from './source.ts';

test('a file that cannot be opened is a failure of who reads it, however late that is', async () => {
  const path = join(import.meta.dirname, 'nowhere');
  const stream = fromMachine(() => createReadStream(path), 'log segment 1', new AbortController().signal);
  await letRun(20);
  await expect(buffer(stream)).rejects.toThrow('the log segment 1 is gone');
});
