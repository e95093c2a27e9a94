/** The `settings` of a compute: server settings, and the libraries that its server loads when it starts. */
import type { EndpointRow, EndpointSettings, PreloadLibraries } from '../db/endpoints.ts';
import type { ProjectRow, ProjectSettings } from '../db/projects.ts';
import type { Config } from '../lib/config.ts';
import { invalid } from '../lib/errors.ts';
import type { SizeRange } from '../lib/model.ts';
import { requirePgSettings } from './pg-settings.ts';
import type { Plan } from './plan.ts';
import { clampSize, logicalReplicationSettings, serverSettings } from './sizing.ts';

export interface Library {
  readonly name: string;
  readonly description: string;
  /** Loaded unless somebody chooses otherwise: it costs a start nothing, and is useless when loaded later. */
  readonly isDefault: boolean;
}

/** A library runs with the server's own rights, so only harmless ones that come with Catnap are allowed. */
export const availableLibraries: readonly Library[] = [
  {
    name: 'pg_stat_statements',
    description: 'Counts how often each statement runs and how long it takes.',
    isDefault: true,
  },
];

/** Those, and what the operator has added; whether this machine has the latter, Postgres is asked. */
export function librariesWith({ allowed }: Config['extensions']): readonly Library[] {
  const description = 'Added by the operator of this Catnap.';
  const known = namesOf(availableLibraries);
  const more = allowed.filter((name) => !known.includes(name));
  return [...availableLibraries, ...more.map((name) => ({ name, description, isDefault: false }))];
}

const namesOf = (libraries: readonly Library[]) => libraries.map(({ name }) => name);

export function requireEndpointSettings(
  settings: EndpointSettings,
  config: Pick<Config, 'extensions'>,
): EndpointSettings {
  const field = 'body.endpoint.settings';
  requireNoPoolerSettings(settings.pgbouncer_settings, field);
  requirePreloadLibraries(settings.preload_libraries, `${field}.preload_libraries`, config);
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

export function requirePreloadLibraries(
  chosen: PreloadLibraries | undefined,
  field: string,
  { extensions }: Pick<Config, 'extensions'>,
): void {
  for (const library of chosen?.enabled_libraries ?? []) {
    const allowed = namesOf(librariesWith(extensions));
    if (allowed.includes(library)) continue;
    throw invalid(`invalid request: ${field}.enabled_libraries must be of ${allowed.join(', ')}; got ${library}`);
  }
}

/** The owner's choices, in the form of the server's configuration. The compute's choice overrides the project's. */
function chosenSettings(project: ProjectSettings, endpoint: EndpointSettings): Record<string, string> {
  const chosen = endpoint.preload_libraries ?? project.preload_libraries ?? {};
  const defaults =
    (chosen.use_defaults ?? true) ? namesOf(availableLibraries.filter(({ isDefault }) => isDefault)) : [];
  const libraries = [...new Set([...defaults, ...(chosen.enabled_libraries ?? [])])];
  return { shared_preload_libraries: libraries.join(','), ...endpoint.pg_settings };
}

/** The settings that a compute's server should run with: those of its size, and its owner's choices over them. */
export function wantedSettings(project: ProjectRow, endpoint: EndpointRow, size: SizeRange): Record<string, string> {
  const isLogical = project.settings.enable_logical_replication;
  return {
    ...serverSettings(size),
    ...(isLogical ? logicalReplicationSettings(size) : {}),
    ...chosenSettings(project.settings, endpoint.settings),
  };
}

/** Whether a running server would have to change: the one comparison that decides if an update queues anything. */
export function areServersAlike(before: ServerWish, after: ServerWish): boolean {
  return canonical(wishOf(before)) === canonical(wishOf(after));
}

export interface ServerWish {
  readonly project: ProjectRow;
  readonly endpoint: EndpointRow;
  readonly plan: Plan;
}

/** The size itself counts too: limits and temporary disk follow from it. */
function wishOf({ project, endpoint, plan }: ServerWish) {
  const { minCu, maxCu } = endpoint;
  const isOutbound = project.settings.allow_outbound_connections === true;
  return { minCu, maxCu, isOutbound, settings: wantedSettings(project, endpoint, clampSize(endpoint, plan)) };
}

/** JSON with keys in order, so that two maps with the same content are the same text. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    part !== null && typeof part === 'object' && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
