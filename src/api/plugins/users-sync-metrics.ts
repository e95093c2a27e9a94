/** How far the copying of users into tenants' databases is behind, asked of the system database at each scrape. */
import type { Registry } from 'prom-client';
import type { Scope } from '../../core/context.ts';
import { readUsersSyncLag, type UsersSyncLag } from '../../core/users-sync.ts';
import { type AskedGauge, addAskedGauges } from '../kit/asked-gauges.ts';

const gauges: readonly AskedGauge<UsersSyncLag>[] = [
  [
    'catnap_users_sync_lag_seconds',
    'Age of the oldest change of a user that is not in the database of its awake compute yet.',
    ({ lagSeconds }) => lagSeconds,
  ],
  [
    'catnap_users_sync_behind',
    'Auth integrations with an awake compute whose users are not up to date.',
    ({ behind }) => behind,
  ],
  [
    'catnap_users_sync_failing',
    'Auth integrations with an awake compute whose last copying failed.',
    ({ failing }) => failing,
  ],
  [
    'catnap_users_provider_failing',
    'Auth integrations whose provider elsewhere could not be read when it was last tried.',
    ({ unreadable }) => unreadable,
  ],
];

export function useUsersSyncMetrics(registry: Registry, scope: Scope): void {
  addAskedGauges(registry, gauges, () => readUsersSyncLag(scope));
}
