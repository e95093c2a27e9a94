/** How far the copying of users into tenants' databases is behind, asked of the system database at each scrape. */
import { Gauge, type Registry } from 'prom-client';
import type { Scope } from '../../core/context.ts';
import { readUsersSyncLag, type UsersSyncLag } from '../../core/users-sync.ts';

const gauges: readonly (readonly [name: string, help: string, value: keyof UsersSyncLag])[] = [
  [
    'catnap_users_sync_lag_seconds',
    'Age of the oldest change of a user that is not in the database of its awake compute yet.',
    'lagSeconds',
  ],
  ['catnap_users_sync_behind', 'Auth integrations with an awake compute whose users are not up to date.', 'behind'],
  ['catnap_users_sync_failing', 'Auth integrations with an awake compute whose last copying failed.', 'failing'],
  [
    'catnap_users_provider_failing',
    'Auth integrations whose provider elsewhere could not be read when it was last tried.',
    'unreadable',
  ],
];

export function useUsersSyncMetrics(registry: Registry, scope: Scope): void {
  // One query for all gauges: they are collected together.
  let asked: { readonly at: number; readonly answer: Promise<UsersSyncLag> } | null = null;
  const ask = () => {
    if (asked === null || performance.now() - asked.at > 100) {
      asked = { at: performance.now(), answer: readUsersSyncLag(scope) };
    }
    return asked.answer;
  };
  for (const [name, help, value] of gauges) {
    const gauge = new Gauge({
      name,
      help,
      registers: [registry],
      collect: async () => {
        // Without the system database the other numbers are still worth having.
        const lag = await ask().catch(() => null);
        if (lag === null) gauge.reset();
        else gauge.set(lag[value]);
      },
    });
  }
}
