import { describe, expect, test } from 'vitest';
import { readConfig } from '../lib/config.ts';
import { choosePorts } from './ports.ts';

const isRoot = process.getuid?.() === 0;
const both = { http: true, pg: true };

describe('a port that cannot be had is refused by the name of its setting', () => {
  test('on an address of another machine', async () => {
    // From a range for documents, which no machine has.
    const config = readConfig({ CATNAP_BIND: '192.0.2.1' });
    await expect(choosePorts(config, both)).rejects.toThrow(
      'CATNAP_BIND="192.0.2.1" is not valid; allowed: an address',
    );
  });

  test.skipIf(isRoot)('without the rights of root', async () => {
    for (const [name, wanted] of Object.entries({
      CATNAP_HTTP_PORT: { http: true, pg: false },
      CATNAP_PG_PORT: { http: false, pg: true },
    })) {
      await expect(choosePorts(readConfig({ [name]: '1' }), wanted)).rejects.toThrow(
        `${name}="1" is not valid; allowed: 1024`,
      );
    }
  });
});
