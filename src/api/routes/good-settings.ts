/** Postgres judges the values of server settings: it is asked before anything is written. */
import type { FastifyRequest } from 'fastify';
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
