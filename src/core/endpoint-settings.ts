/** The `settings` of a compute: server settings, and the libraries that its server loads when it starts. */
import type { EndpointRow, EndpointSettings, PreloadLibraries } from '../db/endpoints.ts';
import type { ProjectRow, ProjectSettings } from '../db/projects.ts';
import { invalid } from '../lib/errors.ts';
import type { SizeRange } from '../lib/model.ts';
import { requirePgSettings } from './pg-settings.ts';
import { serverSettings } from './sizing.ts';

/** Loaded by default: they cost a start nothing, and are useless when loaded later. */
const defaultLibraries: readonly string[] = ['pg_stat_statements'];
/** A library runs with the server's own rights, so only harmless ones that come with Catnap are allowed. */
export const availableLibraries: readonly string[] = [...defaultLibraries];

export function requireEndpointSettings(settings: EndpointSettings): EndpointSettings {
  const field = 'body.endpoint.settings';
  requireNoPoolerSettings(settings.pgbouncer_settings, field);
  requirePreloadLibraries(settings.preload_libraries, `${field}.preload_libraries`);
  return {
    ...(settings.pg_settings && { pg_settings: requirePgSettings(settings.pg_settings, `${field}.pg_settings`) }),
    ...(settings.preload_libraries && { preload_libraries: settings.preload_libraries }),
  };
}

/** Settings of the pooler are refused: it is Catnap's own, and sizes itself. */
export function requireNoPoolerSettings(given: EndpointSettings['pgbouncer_settings'], field: string): void {
  if (Object.keys(given ?? {}).length > 0) {
    throw invalid(`invalid request: ${field}.pgbouncer_settings is not supported: the pooler is set up by Catnap`);
  }
}

export function requirePreloadLibraries(chosen: PreloadLibraries | undefined, field: string): void {
  for (const library of chosen?.enabled_libraries ?? []) {
    if (availableLibraries.includes(library)) continue;
    throw invalid(
      `invalid request: ${field}.enabled_libraries must be of ${availableLibraries.join(', ')}; got ${library}`,
    );
  }
}

/** The owner's choices, in the form of the server's configuration. The compute's choice overrides the project's. */
function chosenSettings(project: ProjectSettings, endpoint: EndpointSettings): Record<string, string> {
  const chosen = endpoint.preload_libraries ?? project.preload_libraries ?? {};
  const defaults = (chosen.use_defaults ?? true) ? defaultLibraries : [];
  const libraries = [...new Set([...defaults, ...(chosen.enabled_libraries ?? [])])];
  return { shared_preload_libraries: libraries.join(','), ...endpoint.pg_settings };
}

/** The settings that a compute's server should run with: those of its size, and its owner's choices over them. */
export function wantedSettings(project: ProjectRow, endpoint: EndpointRow, size: SizeRange): Record<string, string> {
  return { ...serverSettings(size), ...chosenSettings(project.settings, endpoint.settings) };
}
