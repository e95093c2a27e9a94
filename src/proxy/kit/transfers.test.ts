import { expect, it } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import { PostgresProxies, scriptControlPlane, silentLog } from '../../../test/helpers/proxy.ts';
import type { TransferReport } from '../../lib/model.ts';
import { startTransfers } from './transfers.ts';

it('adds up what sessions send, repeats a lost report unchanged, and reports the rest at the end', async () => {
  const reports: TransferReport[] = [];
  let failing = true;
  const reportTransfer = async (report: TransferReport) => {
    reports.push(report);
    if (failing) throw new Error('the database is away');
  };
  const controlPlane = scriptControlPlane({ reportTransfer });
  const transfers = startTransfers({ controlPlane, log: silentLog, intervalMs: 5 });
  const [first, second] = [transfers.open('a'), transfers.open('a')];
  first.bytes += 10;
  second.bytes += 5;
  transfers.add('b', 1);
  first.close();
  second.close();
  await eventually(() => expect(reports.length).toBeGreaterThan(1));
  // It belongs to the next report: the first one may have arrived in spite of its failure.
  transfers.add('a', 100);
  expect(new Set(reports.map(({ sequence }) => sequence))).toEqual(new Set([1]));
  expect(reports.at(-1)?.bytes).toEqual(new Map(Object.entries({ a: 15, b: 1 })));
  failing = false;
  await transfers.close();
  expect(reports.at(-1)).toEqual({ ...reports[0], sequence: 2, bytes: new Map([['a', 100]]) });
  const count = reports.length;
  await transfers.close();
  expect(reports).toHaveLength(count);
});

it('counts what direct and pooled clients are sent', async () => {
  const proxies = new PostgresProxies();
  await proxies.prepare();
  try {
    let sent = 0;
    const reportTransfer = async ({ bytes }: TransferReport) => {
      sent += bytes.get('ep-a') ?? 0;
    };
    const proxy = await proxies.start({ reportTransfer }, { limits: { activityMs: 5 } });
    for (const options of ['endpoint=ep-a', 'endpoint=ep-a-pooler']) {
      sent = 0;
      const client = await proxies.client(proxy, { options });
      await client.query("select repeat('x', 1000000)");
      await eventually(() => expect(sent).toBeGreaterThan(1_000_000));
      await client.end();
      // Greeting, row description and the like.
      expect(sent).toBeLessThan(1_002_000);
    }
  } finally {
    await proxies.dispose();
  }
});
