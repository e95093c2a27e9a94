/** Postgres judges server settings, and libraries that it is to load: it is asked before anything is written. */
import type { FastifyRequest } from 'fastify';
import { availableLibraries } from '../../core/endpoint-settings.ts';
import { requirePgSettings } from '../../core/pg-settings.ts';
import { getProject } from '../../core/project.ts';
import { invalid } from '../../lib/errors.ts';
import type { ProjectId } from '../../lib/ids.ts';
import type { ApiParts } from '../kit/parts.ts';
import { ask } from './command.ts';

type Settings = Readonly<Record<string, string>> | undefined;

/** For settings of something in a project that exists; also the check that the caller may see it. */
export async function requireGoodSettingsIn(
  parts: ApiParts,
  request: FastifyRequest,
  projectId: ProjectId,
  { settings, field }: { readonly settings: Settings; readonly field: string },
): Promise<void> {
  if (settings === undefined || Object.keys(settings).length === 0) return;
  const { project } = await ask(parts, request, (scope, caller) => getProject(scope, caller, projectId));
  await requireGoodSettings(parts, project.pgVersion, { settings, field });
}

export async function requireGoodSettings(
  parts: ApiParts,
  pgVersion: number,
  { settings, field }: { readonly settings: Settings; readonly field: string },
): Promise<void> {
  if (settings === undefined || Object.keys(settings).length === 0) return;
  const wrong = await parts.checkSettings(pgVersion, requirePgSettings(settings, field));
  if (wrong !== null) throw invalid(`invalid request: ${field}: ${wrong}`);
}

interface ChosenLibraries {
  readonly chosen: { readonly enabled_libraries?: readonly string[] } | undefined;
  readonly field: string;
}

/** As above. Libraries of Catnap's own are there; one that the operator has allowed may be missing on this machine. */
export async function requireLoadableIn(
  parts: ApiParts,
  request: FastifyRequest,
  projectId: ProjectId,
  { chosen, field }: ChosenLibraries,
): Promise<void> {
  if (addedLibraries(parts, chosen).length === 0) return;
  const { project } = await ask(parts, request, (scope, caller) => getProject(scope, caller, projectId));
  await requireLoadable(parts, project.pgVersion, { chosen, field });
}

export async function requireLoadable(
  parts: ApiParts,
  pgVersion: number,
  { chosen, field }: ChosenLibraries,
): Promise<void> {
  for (const library of addedLibraries(parts, chosen)) {
    const wrong = await parts.checkSettings(pgVersion, { shared_preload_libraries: library });
    if (wrong !== null)
      throw invalid(`invalid request: ${field}.enabled_libraries: ${library} cannot be loaded: ${wrong}`);
  }
}

/** Any other name is refused by the rule itself. */
function addedLibraries({ config }: ApiParts, chosen: ChosenLibraries['chosen']): readonly string[] {
  const { allowed } = config.extensions;
  const isKnown = (name: string) => availableLibraries.some((library) => library.name === name);
  return (chosen?.enabled_libraries ?? []).filter((name) => allowed.includes(name) && !isKnown(name));
}
