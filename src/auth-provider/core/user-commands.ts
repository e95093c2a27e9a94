/**
 * The only way to make, change and remove a user. Each command locks the project's row, so that the log of changes has
 * the order of the commits, and each change is in the log when it is in the table.
 */
import { randomUUID } from 'node:crypto';
import type { Tx } from '../../db/client.ts';
import { known, plain } from '../http/errors.ts';
import { deletePageSessionsOfUser } from '../statements/page-sessions.ts';
import { lockProject, type ProjectRow } from '../statements/projects.ts';
import { deleteSessionsOfUser } from '../statements/sessions.ts';
import { selectTeamsOfUser } from '../statements/teams.ts';
import { insertChange } from '../statements/user-changes.ts';
import {
  deleteUser,
  insertUser,
  lockUser,
  selectUser,
  selectUserByLogin,
  type UserChange,
  type UserRow,
  updateUser,
} from '../statements/users.ts';
import type { AuthProviderParts } from './parts.ts';
import { serverUserView } from './user-view.ts';

export async function createUser(parts: AuthProviderParts, projectId: string, input: UserChange): Promise<UserRow> {
  return inProject(parts, projectId, (tx, project) => createUserIn(parts, tx, project, input));
}

/** For commands that decide whether to make a user while nobody else changes the project's users. */
export async function inProject<T>(
  parts: AuthProviderParts,
  projectId: string,
  work: (tx: Tx, project: ProjectRow) => Promise<T>,
): Promise<T> {
  return parts.database.transaction(async (tx) => work(tx, await requireLocked(tx, projectId)));
}

/** `complete` adds what belongs to the user before the change is logged. */
export async function createUserIn(
  parts: AuthProviderParts,
  tx: Tx,
  project: ProjectRow,
  input: UserChange,
  complete: (userId: string) => Promise<void> = async () => {},
): Promise<UserRow> {
  requireConsistent(project, blankUser, input);
  await requireFreeLogin(tx, project.id, null, { ...blankUser, ...input });
  const [id, now] = [randomUUID(), parts.clock.now()];
  await insertUser(tx, { id, projectId: project.id, signedUpAt: now, lastActiveAt: now, ...input });
  await complete(id);
  const user = await selectUser(tx, project.id, id);
  if (user === undefined) throw new Error('BUG: a user who was just made is not there');
  await insertChange(tx, { projectId: project.id, userId: id, kind: 'created', user: serverUserView(user), at: now });
  return user;
}

export interface UpdateOptions {
  /** Signs the user out everywhere but in this session; undefined leaves all sessions alone. */
  readonly endSessionsExcept?: string | null;
}

export async function changeUser(
  parts: AuthProviderParts,
  projectId: string,
  userId: string,
  change: UserChange | ((user: UserRow, tx: Tx) => UserChange | Promise<UserChange>),
  options: UpdateOptions = {},
): Promise<UserRow> {
  return inProject(parts, projectId, (tx, project) => changeUserIn(parts, tx, project, userId, change, options));
}

export async function changeUserIn(
  parts: AuthProviderParts,
  tx: Tx,
  project: ProjectRow,
  userId: string,
  change: UserChange | ((user: UserRow, tx: Tx) => UserChange | Promise<UserChange>),
  options: UpdateOptions = {},
): Promise<UserRow> {
  const projectId = project.id;
  const before = await lockUser(tx, projectId, userId);
  if (before === undefined) throw userNotFound();
  const wanted = typeof change === 'function' ? await change(before, tx) : change;
  const complete = withConsequences(before, wanted);
  requireConsistent(project, before, complete);
  await requireFreeLogin(tx, projectId, userId, { ...before, ...complete });
  await requireMembership(tx, userId, complete.selectedTeamId);
  const user = await updateUser(tx, userId, complete);
  if (options.endSessionsExcept !== undefined) {
    await deleteSessionsOfUser(tx, userId, options.endSessionsExcept);
    await deletePageSessionsOfUser(tx, userId);
  }
  const at = parts.clock.now();
  await insertChange(tx, { projectId, userId, kind: 'updated', user: serverUserView(user), at });
  return user;
}

export async function removeUser(parts: AuthProviderParts, projectId: string, userId: string): Promise<void> {
  await parts.database.transaction(async (tx) => {
    await requireLocked(tx, projectId);
    if ((await lockUser(tx, projectId, userId)) === undefined) throw userNotFound();
    await deleteUser(tx, userId);
    const user = { id: userId, teams: [] };
    await insertChange(tx, { projectId, userId, kind: 'deleted', user, at: parts.clock.now() });
  });
}

export const userNotFound = () => known('USER_NOT_FOUND', 'There is no such user in this project.');

const blankUser = { primaryEmail: null, primaryEmailVerified: false, primaryEmailAuthEnabled: false } as const;

type EmailState = Pick<UserRow, 'primaryEmail' | 'primaryEmailVerified' | 'primaryEmailAuthEnabled'>;

/** A new address is unverified unless the change says otherwise, and is a new contact channel. */
function withConsequences(before: UserRow, change: UserChange): UserChange {
  if (change.primaryEmail === undefined || change.primaryEmail === before.primaryEmail) return change;
  const emailChannelId = randomUUID();
  const fallen = change.primaryEmail === null ? { primaryEmailAuthEnabled: false } : {};
  return { primaryEmailVerified: false, ...fallen, ...change, emailChannelId };
}

function requireConsistent(project: ProjectRow, before: EmailState, change: UserChange): void {
  const after = { ...before, ...change };
  if (after.primaryEmail === null && after.primaryEmailAuthEnabled) {
    throw plain(400, 'primary_email_auth_enabled needs a primary_email');
  }
  if (after.primaryEmail === null && after.primaryEmailVerified) {
    throw plain(400, 'primary_email_verified needs a primary_email');
  }
  if (typeof change.passwordHash === 'string' && !project.credentialEnabled) {
    throw plain(400, 'password sign-in is not enabled for this project');
  }
}

async function requireFreeLogin(tx: Tx, projectId: string, userId: string | null, after: EmailState): Promise<void> {
  if (after.primaryEmail === null || !after.primaryEmailAuthEnabled) return;
  const holder = await selectUserByLogin(tx, projectId, after.primaryEmail);
  if (holder === undefined || holder.id === userId) return;
  throw emailTaken(after.primaryEmail);
}

async function requireMembership(tx: Tx, userId: string, teamId: string | null | undefined): Promise<void> {
  if (typeof teamId !== 'string') return;
  const teams = await selectTeamsOfUser(tx, userId);
  if (!teams.some((team) => team.id === teamId)) throw plain(400, 'selected_team_id must be a team of the user.');
}

export function emailTaken(email: string) {
  return known('USER_EMAIL_ALREADY_EXISTS', 'A user with this e-mail address exists already.', {
    email,
    would_work_if_email_was_verified: false,
  });
}

async function requireLocked(tx: Tx, projectId: string): Promise<ProjectRow> {
  const project = await lockProject(tx, projectId);
  if (project === undefined)
    throw known('CURRENT_PROJECT_NOT_FOUND', 'The project was deleted.', { project_id: projectId });
  return project;
}
