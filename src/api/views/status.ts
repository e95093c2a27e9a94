/** The reply to `/status.json`, brief or whole. */
import type { Static } from 'typebox';
import type { SystemStatus } from '../../core/status.ts';
import type { ApiConfig } from '../kit/parts.ts';
import type { Installation } from '../schemas/unversioned.ts';

type InstallationView = Static<typeof Installation>;

export function briefStatusView(version: string): InstallationView {
  return { name: 'catnap', version };
}

export function statusView(config: ApiConfig, version: string, counts: SystemStatus): InstallationView {
  return {
    ...briefStatusView(version),
    driver: config.driver,
    region_id: config.region,
    pg_versions: [...config.pgVersions],
    api_url: `${config.publicUrl}/api/v2`,
    database_port: config.pgPort,
    limits_enforced: config.limitsEnforced,
    storage_method: config.storageMethod,
    temporary_disk_enforcement: config.temporaryDiskEnforcement,
    counts: { projects: counts.projects, endpoints: counts.endpoints },
  };
}
