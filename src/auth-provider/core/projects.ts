/** Commands on projects: provisioning for a control plane, and the one transfer to a person. */
import { randomUUID } from 'node:crypto';
import type { Tx } from '../../db/client.ts';
import { hashToken } from '../../lib/secrets.ts';
import { plain } from '../http/errors.ts';
import { type CodeRow, insertCode, useCode } from '../statements/codes.ts';
import {
  deleteAttempt,
  insertProject,
  lockProject,
  type ProjectRow,
  selectProject,
  updateProject,
} from '../statements/projects.ts';
import { insertTeam } from '../statements/teams.ts';
import type { UserRow } from '../statements/users.ts';
import { codeUsed, requireCode } from './codes.ts';
import { internalProjectId } from './internal-project.ts';
import { farFuture, makeKeySet } from './key-sets.ts';
import type { AuthProviderParts } from './parts.ts';
import { newToken } from './tokens.ts';

const transferMs = 3_600_000;

export async function provisionProject(
  parts: AuthProviderParts,
  { displayName, clientId, attempt }: { displayName: string; clientId: string; attempt: string | null },
): Promise<{ projectId: string; adminKey: string }> {
  return parts.database.transaction(async (tx) => {
    const id = randomUUID();
    // The caller repeats the attempt because the answer, with the only key, never arrived: the old project is unusable.
    if (attempt !== null) await deleteAttempt(tx, clientId, attempt);
    const origin = { description: 'Created by Catnap', provisionedBy: clientId, provisionAttempt: attempt };
    await insertProject(tx, { id, displayName, ...origin });
    const made = await makeKeySet(tx, {
      projectId: id,
      description: 'Made for the service that manages this project. Do not revoke it.',
      expiresAt: farFuture(parts.clock.now()),
      publishable: false,
      secret: false,
      admin: true,
    });
    return { projectId: id, adminKey: made.adminKey ?? '' };
  });
}

/** Control planes check for this refusal: it is how they learn that a transfer has happened. */
export function notTransferable() {
  return plain(400, 'This project does not exist, or this client cannot transfer it. A transfer happens only once.');
}

export async function requireTransferable(
  parts: AuthProviderParts,
  projectId: string,
  clientId: string,
): Promise<ProjectRow> {
  const project = await selectProject(parts.database.sql, projectId);
  if (project?.provisionedBy !== clientId) throw notTransferable();
  return project;
}

export async function startTransfer(parts: AuthProviderParts, projectId: string): Promise<string> {
  const code = newToken();
  const expiresAt = new Date(parts.clock.now().getTime() + transferMs);
  await insertCode(parts.database.sql, {
    id: randomUUID(),
    projectId,
    kind: 'project_transfer',
    codeHash: hashToken(code),
    userId: null,
    email: null,
    expiresAt,
  });
  return `${parts.baseUrl}/integrations/neon/projects/transfer/confirm?code=${code}`;
}

export function requireTransferCode(parts: AuthProviderParts, code: string): Promise<CodeRow> {
  return requireCode(parts, 'project_transfer', code);
}

/**
 * Gives the project to a new team of this user. The code is used up only when the transfer happens, and of two codes
 * for one project only the first has any effect.
 */
export async function confirmTransfer(parts: AuthProviderParts, code: string, user: UserRow): Promise<ProjectRow> {
  const row = await requireTransferCode(parts, code);
  return parts.database.transaction(async (tx) => {
    const project = await lockProject(tx, row.projectId);
    if (project === undefined || project.provisionedBy === null) {
      throw plain(400, 'The project was not provisioned by a service, or was transferred already.');
    }
    if (!(await useCode(tx, row.id, parts.clock.now()))) {
      throw codeUsed();
    }
    const ownerTeamId = await makeOwnerTeam(tx, user);
    return (await updateProject(tx, project.id, { provisionedBy: null, ownerTeamId })) ?? project;
  });
}

async function makeOwnerTeam(tx: Tx, user: UserRow): Promise<string> {
  const id = randomUUID();
  const name = user.displayName ?? user.primaryEmail;
  const displayName = name === null ? 'Personal Team' : `${name}'s Team`;
  await insertTeam(tx, { id, projectId: internalProjectId, displayName }, user.id);
  return id;
}
