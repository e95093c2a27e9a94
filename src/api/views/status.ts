/** What `/status.json` says. */
import type { Config } from '../../config.ts';
import type { SystemStatus } from '../../core/status.ts';

export function briefStatusView(version: string) {
  return { name: 'catnap', version };
}

export function statusView(config: Config, version: string, counts: SystemStatus) {
  return {
    ...briefStatusView(version),
    driver: config.driver,
    region_id: config.region,
    pg_versions: config.pgVersions,
    api_url: `${config.publicUrl}/api/v2`,
    database_port: config.pgPort,
    counts: { projects: counts.projects, endpoints: counts.endpoints },
  };
}
