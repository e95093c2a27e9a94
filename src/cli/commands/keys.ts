/** `catnap keys`: lists, creates and revokes API keys, shows where the first one is, and makes one on the machine. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { CliFailure } from '../kit/failure.ts';
import type { CreateApiKeyReply, GetProjectReply, ListApiKeysReply, RevokeApiKeyReply } from '../kit/generated.ts';
import { keyFile, type RunCommand, readKeyFile, type Session } from '../kit/session.ts';
import { findProject } from '../kit/targets.ts';

interface Owner {
  readonly org?: string;
  readonly project?: string;
}

interface Limits {
  readonly scope?: 'full' | 'read_only' | 'branches' | 'sql';
  readonly expiresAt?: string;
}

const scopeOption = new Option(
  '--scope <scope>',
  'what the key may do: full; read_only; branches, which also changes those that are neither default nor protected; sql',
).choices(['full', 'read_only', 'branches', 'sql']);

const orgOption = ['--org <id>', 'keys of this organization instead of your personal ones'] as const;
const projectOption = ['--project <project>', 'keys that reach this one project only (id or name)'] as const;

export function addKeys(program: Command, run: RunCommand): void {
  const keys = program.command('keys').description('API keys: list, create, revoke, show the first one, recover');
  keys
    .command('list')
    .description('list keys, without their secrets')
    .option(...orgOption)
    .option(...projectOption)
    .action((owner: Owner) => run((session) => listKeys(session, owner)));
  keys
    .command('create')
    .description('make a key and print its secret, once')
    .argument('<name>', 'what you will recognise it by')
    .option(...orgOption)
    .option('--project <project>', 'reach one project only (id or name), without the right to delete it')
    .addOption(scopeOption)
    .option('--expires-at <time>', 'when it stops working (default: never)')
    .action((name: string, options: Owner & Limits) => run((session) => createKey(session, name, options)));
  keys
    .command('revoke')
    .description('make a key stop working, at once')
    .argument('<id>', 'number of the key, as `keys list` shows it', parseKeyId)
    .option(...orgOption)
    .option(...projectOption)
    .action((id: number, owner: Owner) => run((session) => revokeKey(session, id, owner)));
  keys
    .command('show')
    .description('print the first key, which the first start has left in the data home')
    .option('--raw', 'the key alone, for use in a script')
    .action((options: { readonly raw?: boolean }) => run((session) => showFirstKey(session, options.raw ?? false)));
  keys
    .command('recover')
    .description('make a personal key on the machine itself, if the one in the data home no longer works')
    .action(() => run(recoverKey));
}

async function listKeys(session: Session, owner: Owner): Promise<undefined> {
  const place = await keysOf(session, owner);
  const columns = {
    id: 'id',
    name: 'name',
    ...(place.org !== undefined && { project_id: 'project' }),
    scope: 'scope',
    expires_at: 'expires at',
    created_at: 'created at',
    last_used_at: 'last used at',
  };
  session.writer.list(await readKeys(session, place), columns, 'There are no keys.');
}

async function createKey(session: Session, name: string, options: Owner & Limits): Promise<undefined> {
  const { client, writer } = session;
  const { path, project } = await keysOf(session, options);
  const made = await client.post<CreateApiKeyReply>(path, {
    key_name: name,
    project_id: project,
    scope: options.scope,
    expires_at: options.expiresAt,
  });
  const columns = {
    id: 'id',
    name: 'name',
    project_id: 'project',
    scope: 'scope',
    expires_at: 'expires at',
    key: 'key',
  };
  writer.record(made, columns);
  writer.remark('The key is not shown again.');
}

async function revokeKey(session: Session, id: number, owner: Owner): Promise<undefined> {
  const { client, writer } = session;
  const place = await keysOf(session, owner);
  // The API revokes any key of the organization.
  if (place.project !== undefined && !(await readKeys(session, place)).some((key) => key.id === id)) {
    throw new CliFailure(
      `project ${place.project} has no key ${id}: see \`catnap keys list --project ${place.project}\``,
    );
  }
  const gone = await client.delete<RevokeApiKeyReply>(`${place.path}/${id}`);
  writer.record(gone, { id: 'revoked', name: 'name' });
  if (gone.warning !== undefined) writer.remark(gone.warning);
}

async function showFirstKey({ parts, writer }: Session, raw: boolean): Promise<undefined> {
  const key = await readKeyFile(parts.home);
  if (raw) parts.stdout.write(`${key}\n`);
  else writer.record({ file: keyFile(parts.home), key }, { file: 'file', key: 'key' });
}

async function recoverKey({ parts, writer }: Session): Promise<undefined> {
  const { key, isNew } = await parts.recoverKey();
  writer.record({ file: keyFile(parts.home), key }, { file: 'file', key: 'key' });
  writer.remark(isNew ? 'It is new, and a personal key of the operator.' : 'It still works, so no key was made.');
}

interface KeysPlace {
  /** Of the API. */
  readonly path: string;
  /** Personal keys belong to none. */
  readonly org?: string | undefined;
  readonly project?: string | undefined;
}

async function keysOf(session: Session, owner: Owner): Promise<KeysPlace> {
  const project = owner.project === undefined ? undefined : (await findProject(session, owner)).id;
  const org = owner.org ?? (project && (await organizationOf(session, project)));
  const path = org === undefined ? '/api_keys' : `/organizations/${encodeURIComponent(org)}/api_keys`;
  return { path, org, project };
}

async function readKeys({ client }: Session, { path, project }: KeysPlace): Promise<ListApiKeysReply> {
  const keys = await client.get<ListApiKeysReply>(path);
  return project === undefined ? keys : keys.filter(({ project_id: of }) => of === project);
}

/** A key for one project belongs to the organization that owns the project. */
async function organizationOf({ client }: Session, projectId: string): Promise<string> {
  const { project } = await client.get<GetProjectReply>(`/projects/${encodeURIComponent(projectId)}`);
  if (project.org_id === undefined) throw new CliFailure(`project ${projectId} names no organization: pass --org`);
  return project.org_id;
}

function parseKeyId(given: string): number {
  if (!/^[1-9]\d{0,14}$/.test(given)) throw new InvalidArgumentError('It must be a number, as `keys list` shows it.');
  return Number(given);
}
