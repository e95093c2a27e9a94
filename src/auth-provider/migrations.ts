/** The migrations of the provider's own tables. They need no table of the platform. */
import { loadMigrations, type MigrationSet } from '../db/migrate.ts';

export async function loadAuthProviderMigrations(): Promise<MigrationSet> {
  return { name: 'auth-provider', migrations: await loadMigrations(new URL('./migrations/', import.meta.url)) };
}
