/** The migrations of both products, in the order in which they are applied. */
import { loadAuthProviderMigrations } from '../auth-provider/migrations.ts';
import { loadPlatformMigrations, type MigrationSet } from '../db/migrate.ts';

/** The provider's come first: a view of the platform, `auth_user_log`, reads the provider's log of users. */
export async function loadAllMigrations(): Promise<MigrationSet[]> {
  return [await loadAuthProviderMigrations(), await loadPlatformMigrations()];
}
