/**
 * What a turn saw without a lock may have changed by the time it acts. Acting goes through here: the project and the
 * endpoint are locked, in the order of every command, and the finding is checked again before anything is queued.
 */
import { type CommandScope, type Core, commandScope } from '../core/context.ts';
import { type EndpointRow, lockEndpoint } from '../db/endpoints.ts';
import { selectUnfinishedForEndpoint } from '../db/operations.ts';
import { lockProject } from '../db/projects.ts';
import type { EndpointId, ProjectId } from '../lib/ids.ts';

export interface SeenEndpoint {
  readonly id: EndpointId;
  readonly projectId: ProjectId;
}

/** Does nothing where the project or the endpoint is gone, or `isStill` no longer holds. */
export async function actIfStill(
  core: Core,
  seen: SeenEndpoint,
  isStill: (endpoint: EndpointRow) => boolean,
  act: (scope: CommandScope, endpoint: EndpointRow) => Promise<void>,
): Promise<void> {
  await core.database.transaction(async (tx) => {
    const endpoint = (await lockProject(tx, seen.projectId)) && (await lockEndpoint(tx, seen.id));
    if (endpoint !== undefined && isStill(endpoint)) await act(commandScope(core, tx), endpoint);
  });
}

/** As `actIfStill`, but not while an operation of the endpoint is unfinished: that knows more than an observation. */
export async function actIfUntouched(
  core: Core,
  seen: SeenEndpoint,
  isStill: (endpoint: EndpointRow) => boolean,
  act: (scope: CommandScope, endpoint: EndpointRow) => Promise<void>,
): Promise<void> {
  await actIfStill(core, seen, isStill, async (scope, endpoint) => {
    if ((await selectUnfinishedForEndpoint(scope.tx, endpoint.id)) === undefined) await act(scope, endpoint);
  });
}

/** It runs, or should, and was not started anew since it was seen. */
export const isSameLife = (seen: EndpointRow) => (endpoint: EndpointRow) =>
  endpoint.currentState === 'active' && endpoint.generation === seen.generation;
