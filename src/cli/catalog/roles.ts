/**
 * The roles and databases of one branch in another project: attributes, members, settings, and passwords, as such where
 * they are stored and otherwise as verifiers. All of it can be repeated.
 */
import { ApiRefusal } from '../kit/client.ts';
import type { ServerRoles } from '../kit/copy-parts.ts';
import type {
  CreateProjectBranchDatabaseReply,
  CreateProjectBranchRoleReply,
  Operation,
  Project,
  ResetProjectBranchRolePasswordReply,
} from '../kit/generated.ts';
import { untilDone } from '../kit/operations.ts';
import type { Session } from '../kit/session.ts';
import { type BranchPlace, branchPath, type Place, passwordOf, rolePath, uriOf, verifiersOf } from './place.ts';

export interface CopiedDatabase {
  readonly name: string;
  readonly owner: string;
  /** What it is called in the source now. */
  readonly sourceName: string;
}

export interface Secrets {
  /** By role: its password, or a verifier of it where that is all there is. */
  readonly secrets: ReadonlyMap<string, string>;
  readonly verifiers: ReadonlyMap<string, string>;
}

export interface Catalog extends Secrets {
  readonly databases: readonly CopiedDatabase[];
  readonly roles: ServerRoles;
}

/** Owners of databases count as roles of the API, which gives databases to no others. */
export async function readRoles({ parts }: Session, source: Place, databases: Catalog['databases']) {
  const [first] = databases;
  if (first === undefined) return { roles: [], memberships: [], settings: [] };
  const names = [...(await verifiersOf(source)).keys()];
  const found = await parts.roles.read(await uriOf(source, first.sourceName, first.owner), names);
  const isOwner = (name: string) => databases.some(({ owner }) => owner === name);
  return { ...found, roles: found.roles.map((role) => ({ ...role, isOfApi: role.isOfApi || isOwner(role.name) })) };
}

/** A stored password is older than that of the server if somebody has changed it by SQL just now. */
export async function readSecrets({ parts }: Session, source: BranchPlace): Promise<Secrets> {
  const secrets = new Map<string, string>();
  const verifiers = new Map<string, string>();
  for (const [name, verifier] of await verifiersOf(source)) {
    if (verifier === undefined) continue;
    const stored = await passwordOf(source, name);
    const isCurrent = stored !== undefined && (await parts.roles.isPasswordOf(verifier, stored));
    secrets.set(name, isCurrent ? stored : verifier);
    verifiers.set(name, verifier);
  }
  return { secrets, verifiers };
}

/** What a new project has of one that it is a copy of. */
export const projectLike = (project: Project, branch: string | undefined, [first]: Catalog['databases']) => ({
  store_passwords: project.store_passwords,
  history_retention_seconds: project.history_retention_seconds,
  settings: project.settings,
  default_endpoint_settings: project.default_endpoint_settings,
  branch: { name: branch, database_name: first?.name, role_name: first?.owner },
});

/** Roles of the API get new passwords until `givePasswords`. Returns sentences about what was left out. */
export async function makeCatalog(session: Session, target: Place, catalog: Catalog): Promise<readonly string[]> {
  for (const { name, canLogin } of catalog.roles.roles.filter(({ isOfApi }) => isOfApi)) {
    const path = `${branchPath(target)}/roles`;
    const role = { name, no_login: !canLogin };
    const made = await unlessThere(target.client.post<CreateProjectBranchRoleReply>(path, { role }), target);
    if (made?.role.password !== undefined) target.known?.passwords.set(name, made.role.password);
  }
  for (const { name, owner } of catalog.databases) {
    const path = `${branchPath(target)}/databases`;
    const database = { name, owner_name: owner };
    await unlessThere(target.client.post<CreateProjectBranchDatabaseReply>(path, { database }), target);
  }
  await makeOtherRoles(session, target, catalog);
  return takeSettingsOver(session, target, catalog);
}

async function unlessThere<Reply extends { readonly operations: readonly Operation[] }>(
  request: Promise<Reply>,
  { client }: Place,
): Promise<Reply | null> {
  const made = await request.catch((error: unknown) => {
    if (error instanceof ApiRefusal && error.status === 409) return null;
    throw error;
  });
  if (made !== null) await untilDone(client, made.operations);
  return made;
}

/** Those that the API does not make, with their passwords; the owner of the first database makes them. */
async function makeOtherRoles({ parts }: Session, target: Place, catalog: Catalog): Promise<void> {
  const [first] = catalog.databases;
  if (first === undefined) return;
  const { roles, verifiers } = catalog;
  await parts.roles.make(await uriOf(target, first.name, first.owner), { ...roles, verifiers });
}

/** A setting is made by the owner of its database, or by the role that it is of, or by the one that made that role. */
async function takeSettingsOver({ parts }: Session, target: Place, catalog: Catalog): Promise<readonly string[]> {
  const { databases, roles } = catalog;
  const [first] = databases;
  if (first === undefined || roles.settings.length === 0) return [];
  const names = roles.roles.map(({ name }) => name);
  const held = await parts.roles.read(await uriOf(target, first.name, first.owner), names);
  const textOf = (one: ServerRoles['settings'][number]) => JSON.stringify([one.database, one.role, one.text]);
  const isHeld = new Set(held.settings.map(textOf));
  const notes: string[] = [];
  for (const { database: before, role, text } of roles.settings) {
    const of = databases.find(({ sourceName }) => sourceName === before);
    const setting = { database: of?.name ?? null, role, text };
    if ((before !== null && of === undefined) || isHeld.has(textOf(setting))) continue;
    const isOfApi = roles.roles.some(({ name, isOfApi: is }) => is && name === role);
    const login = role === null ? of?.owner : isOfApi ? role : first.owner;
    const uri = await uriOf(target, first.name, login ?? first.owner).catch((error: unknown) => {
      if (error instanceof ApiRefusal && error.status === 412) return null;
      throw error;
    });
    if (uri !== null) notes.push(...(await parts.roles.makeSettings(uri, [setting])));
    else notes.push(`the setting ${text.split('=')[0]} of ${login} was left out: its password is not stored`);
  }
  return notes;
}

/** To roles of the API. A reset logs the role out, so a password that is right already is left alone. */
export async function givePasswords(target: BranchPlace, { roles, secrets }: Catalog): Promise<void> {
  const held = await verifiersOf(target);
  for (const { name, isOfApi } of roles.roles) {
    const secret = secrets.get(name);
    if (!isOfApi || secret === undefined) continue;
    if (held.get(name) === secret || (await passwordOf(target, name)) === secret) continue;
    const path = `${rolePath(target, name)}/reset_password`;
    const { operations } = await target.client.post<ResetProjectBranchRolePasswordReply>(path, { password: secret });
    await untilDone(target.client, operations);
  }
}

/** Gives all roles the passwords that they have in the source by now. */
export async function takePasswords(session: Session, source: BranchPlace, target: Place, catalog: Catalog) {
  const read = await readSecrets(session, source);
  await makeOtherRoles(session, target, { ...catalog, ...read });
  await givePasswords(target, { ...catalog, ...read });
  return read;
}
