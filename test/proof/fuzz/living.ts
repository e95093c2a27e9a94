/**
 * What there is: ids of living things, learned from replies, so that requests reach beyond "not found". Things that
 * belong together are handed out together, since a branch of another project would be a 404.
 */
import type { Random } from '../random.ts';

type Values = Readonly<Record<string, string>>;

interface Branch {
  readonly id: string;
  readonly endpoints: Names;
  readonly roles: Names;
  readonly databases: Names;
}
interface Project {
  readonly id: string;
  readonly branches: Map<string, Branch>;
  readonly operations: Names;
  readonly snapshots: Names;
  readonly keySets: Names;
}

/** The last few names of a kind. */
class Names {
  readonly #names = new Set<string>();

  add(name: string): void {
    this.#names.delete(name);
    this.#names.add(name);
    const oldest = this.#names.values().next().value;
    if (this.#names.size > 8 && oldest !== undefined) this.#names.delete(oldest);
  }

  delete(name: string): void {
    this.#names.delete(name);
  }

  pick(random: Random): string | undefined {
    return this.#names.size === 0 ? undefined : random.pick([...this.#names]);
  }
}

/** Names of attributes and parameters, and which of the values each takes. */
const aliases: Readonly<Record<string, string>> = {
  parent_id: 'branch_id',
  source_branch_id: 'branch_id',
  target_branch_id: 'branch_id',
  base_branch_id: 'branch_id',
  source_org_id: 'org_id',
  owner_name: 'role_name',
  db_name: 'database_name',
};

export class Living {
  readonly #projects = new Map<string, Project>();
  readonly #keys = new Names();
  readonly #users = new Names();
  readonly #cursors = new Names();
  #constant: Values = {};

  /** Values that stay as they are, such as the organization's id. */
  keep(values: Values): void {
    this.#constant = { ...this.#constant, ...values };
  }

  get projectCount(): number {
    return this.#projects.size;
  }

  get oldestProject(): string | undefined {
    return this.#projects.keys().next().value;
  }

  /** Values that belong together, by the names that requests have for them. */
  choose(random: Random): Values {
    const project = this.#projects.size === 0 ? undefined : random.pick([...this.#projects.values()]);
    const branches = [...(project?.branches.values() ?? [])];
    const branch = branches.length === 0 ? undefined : random.pick(branches);
    const found = {
      project_id: project?.id,
      branch_id: branch?.id,
      endpoint_id: branch?.endpoints.pick(random),
      role_name: branch?.roles.pick(random),
      database_name: branch?.databases.pick(random),
      operation_id: project?.operations.pick(random),
      snapshot_id: project?.snapshots.pick(random),
      jwks_id: project?.keySets.pick(random),
      key_id: this.#keys.pick(random),
      auth_user_id: this.#users.pick(random),
      user_id: this.#users.pick(random),
      cursor: this.#cursors.pick(random),
    };
    const known = Object.entries(found).filter((entry): entry is [string, string] => entry[1] !== undefined);
    return { ...this.#constant, ...Object.fromEntries(known) };
  }

  static valueOf(values: Values, name: string): string | undefined {
    return values[aliases[name] ?? name];
  }

  /** Reads a reply for what was made, and forgets what a successful DELETE took away. */
  learn(method: string, path: string, values: Values, body: unknown): void {
    if (method === 'DELETE') this.#forget(path, values);
    else this.#read(body, values.project_id, path.endsWith('/api_keys') && method === 'POST');
  }

  forgetProject(id: string): void {
    this.#projects.delete(id);
  }

  #forget(path: string, { project_id = '', branch_id = '', ...others }: Values): void {
    const project = this.#projects.get(project_id);
    const branch = project?.branches.get(branch_id);
    const last = /\{(\w+)\}$/.exec(path)?.[1];
    if (last === 'project_id') this.#projects.delete(project_id);
    if (last === 'branch_id') project?.branches.delete(branch_id);
    if (last === 'endpoint_id') branch?.endpoints.delete(others.endpoint_id ?? '');
    if (last === 'role_name') branch?.roles.delete(others.role_name ?? '');
    if (last === 'database_name') branch?.databases.delete(others.database_name ?? '');
    if (last === 'snapshot_id') project?.snapshots.delete(others.snapshot_id ?? '');
    if (last === 'jwks_id') project?.keySets.delete(others.jwks_id ?? '');
    if (last === 'key_id') this.#keys.delete(others.key_id ?? '');
  }

  #read(body: unknown, projectId: string | undefined, isKey: boolean): void {
    if (typeof body !== 'object' || body === null) return;
    if (isKey && 'id' in body) this.#keys.add(String(body.id));
    for (const [name, value] of Object.entries(body)) {
      if (name === 'cursor' || name === 'next') this.#cursors.add(String(value));
      for (const one of [value].flat()) {
        if (typeof one !== 'object' || one === null) continue;
        this.#readThing(name.replace(/s$/, ''), one as Record<string, unknown>, projectId);
      }
    }
  }

  #readThing(kind: string, thing: Record<string, unknown>, projectIdOfPath: string | undefined): void {
    const text = (name: string) => (typeof thing[name] === 'string' ? thing[name] : undefined);
    const id = text('id') ?? '';
    if (kind === 'project' && id !== '' && thing.deleted_at === undefined) this.#project(id);
    if (kind === 'user' && id !== '') this.#users.add(id);
    const project = this.#projects.get(text('project_id') ?? projectIdOfPath ?? '');
    if (project === undefined) return;
    if (kind === 'branch' && thing.deleted_at === undefined) branchOf(project, id);
    if (kind === 'operation') project.operations.add(id);
    if (kind === 'snapshot') project.snapshots.add(id);
    if (kind === 'jwk') project.keySets.add(id);
    const branchId = text('branch_id');
    if (branchId === undefined) return;
    if (kind === 'endpoint') branchOf(project, branchId).endpoints.add(id);
    if (kind === 'role') branchOf(project, branchId).roles.add(text('name') ?? '');
    if (kind === 'database') branchOf(project, branchId).databases.add(text('name') ?? '');
  }

  #project(id: string): void {
    if (this.#projects.has(id)) return;
    const made = { id, branches: new Map(), operations: new Names(), snapshots: new Names(), keySets: new Names() };
    this.#projects.set(id, made);
  }
}

function branchOf(project: Project, id: string): Branch {
  const known = project.branches.get(id);
  if (known !== undefined) return known;
  const made = { id, endpoints: new Names(), roles: new Names(), databases: new Names() };
  project.branches.set(id, made);
  return made;
}
