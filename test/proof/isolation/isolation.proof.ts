/**
 * `npm run isolation`: who can see, change or disturb what belongs to somebody else. Parts, by `--only`: `routes`,
 * `scopes`, `events`, `provider`, `wire`, `sql`, `ssrf`, `browser`, `neighbours`.
 */
import { afterAll, describe, expect, test } from 'vitest';
import { keepLedger, proofOptions } from '../ledger.ts';
import { visitEveryPage } from './browser.ts';
import { sweepEvents } from './events.ts';
import { measureNeighbours } from './neighbours.ts';
import { sweepProvider } from './provider.ts';
import type { PartReport } from './report.ts';
import { routesThatShow, sweepRoutes } from './routes.ts';
import { sweepScopes } from './scopes.ts';
import { tryEscapes } from './sql.ts';
import { trySsrf } from './ssrf.ts';
import { makeStage } from './stage.ts';
import { sweepWire } from './wire.ts';

const options = proofOptions();
const begunAt = Date.now();
const reports: PartReport[] = [];

const isAsked = (part: string) => options.only.length === 0 || options.only.includes(part);

function part(name: string, run: () => Promise<PartReport>): void {
  describe.runIf(isAsked(name))(name, () => {
    test('finds nothing', async () => {
      const report = await run();
      reports.push(report);
      expect([...report.leaks, ...report.changes]).toEqual([]);
    });
  });
}

part('routes', async () => {
  const stage = await makeStage();
  try {
    expect(await routesThatShow(stage)).toBeGreaterThan(15);
    return await sweepRoutes(stage);
  } finally {
    await stage.close();
  }
});

part('scopes', async () => {
  const stage = await makeStage();
  try {
    return await sweepScopes(stage);
  } finally {
    await stage.close();
  }
});

part('events', async () => {
  const stage = await makeStage();
  try {
    return await sweepEvents(stage);
  } finally {
    await stage.close();
  }
});

part('provider', () => sweepProvider());

part('wire', () => sweepWire());

part('sql', () => tryEscapes());

part('ssrf', trySsrf);

part('browser', visitEveryPage);

part('neighbours', measureNeighbours);

afterAll(() => {
  const sum = (of: (report: PartReport) => number) => reports.reduce((total, report) => total + of(report), 0);
  keepLedger(
    'isolation',
    {
      seed: options.seed,
      seconds: (Date.now() - begunAt) / 1000,
      totals: {
        attempts: sum(({ attempts }) => attempts),
        leaks: sum(({ leaks }) => leaks.length),
        changes: sum(({ changes }) => changes.length),
      },
      tables: [
        {
          title: 'Attempts by part',
          columns: ['part', 'attempts', 'leaks', 'changes'],
          rows: reports.map(({ part: name, attempts, leaks, changes }) => [
            name,
            attempts,
            leaks.length,
            changes.length,
          ]),
        },
        ...reports.flatMap(({ tables = [] }) => tables),
      ],
    },
    options,
  );
});
