/** Random work through the API, beside writers and faults: every kind of thing is made, changed and removed. */
import { thinkTime } from '../../helpers/eventually.ts';
import type { Random } from '../random.ts';
import type { Tenant, World } from './world.ts';

type Operation = (world: World, tenant: Tenant, random: Random) => Promise<unknown>;

const branchesMax = 3;
const snapshotsMax = 2;
const rolesMax = 4;
const replicasMax = 2;
const projectsMax = 2;

interface Named {
  readonly id: string;
  readonly name: string;
}

const of = ({ projectId }: Tenant, rest: string) => `/projects/${projectId}${rest}`;

async function list(world: World, path: string, key: string): Promise<Named[]> {
  const reply = await world.call('GET', path);
  return reply?.body?.[key] ?? [];
}

async function sideBranches(world: World, tenant: Tenant): Promise<Named[]> {
  return (await list(world, of(tenant, '/branches'), 'branches')).filter(({ id }) => id !== tenant.branchId);
}

const onMainCompute =
  (action: 'suspend' | 'start' | 'restart'): Operation =>
  (world, tenant) =>
    world.call('POST', of(tenant, `/endpoints/${tenant.endpointId}/${action}`));

const changeSettings: Operation = (world, tenant, random) => {
  const largest = random.pick([1, 2]);
  const endpoint = {
    autoscaling_limit_min_cu: random.pick([0.25, 0.5, 1]),
    autoscaling_limit_max_cu: largest,
    settings: {
      pg_settings: { work_mem: random.pick(['4MB', '8MB']), max_locks_per_transaction: random.pick(['64', '96']) },
    },
  };
  return world.call('PATCH', of(tenant, `/endpoints/${tenant.endpointId}`), { endpoint });
};

const makeBranch: Operation = async (world, tenant, random) => {
  if ((await sideBranches(world, tenant)).length >= branchesMax) return removeBranch(world, tenant, random);
  const branch = { name: `side ${random.below(1e9)}`, parent_id: tenant.branchId };
  const endpoints = random.chance(0.6) ? { endpoints: [{ type: 'read_write' }] } : {};
  return world.call('POST', of(tenant, '/branches'), { branch, ...endpoints });
};

const removeBranch: Operation = async (world, tenant, random) => {
  const found = await sideBranches(world, tenant);
  if (found.length === 0) return;
  await world.call('DELETE', of(tenant, `/branches/${random.pick(found).id}?hard_delete=true`));
};

const restoreBranch: Operation = async (world, tenant, random) => {
  const found = await sideBranches(world, tenant);
  if (found.length === 0) return;
  const body = { source_branch_id: tenant.branchId };
  await world.call('POST', of(tenant, `/branches/${random.pick(found).id}/restore`), body);
};

const takeSnapshot: Operation = async (world, tenant, random) => {
  const found = await list(world, of(tenant, '/snapshots'), 'snapshots');
  if (found.length < snapshotsMax) return world.call('POST', of(tenant, `/branches/${tenant.branchId}/snapshot`));
  return world.call('DELETE', of(tenant, `/snapshots/${random.pick(found).id}`));
};

const restoreSnapshot: Operation = async (world, tenant, random) => {
  const found = await list(world, of(tenant, '/snapshots'), 'snapshots');
  if (found.length === 0 || (await sideBranches(world, tenant)).length >= branchesMax) return;
  const body = { name: `from a snapshot ${random.below(1e9)}` };
  await world.call('POST', of(tenant, `/snapshots/${random.pick(found).id}/restore`), body);
};

const changeRoles: Operation = async (world, tenant, random) => {
  const path = of(tenant, `/branches/${tenant.branchId}/roles`);
  const found = (await list(world, path, 'roles')).filter(({ name }) => name.startsWith('side'));
  if (found.length < rolesMax) return world.call('POST', path, { role: { name: `side${random.below(1e9)}` } });
  const { name } = random.pick(found);
  if (random.chance(0.5)) return world.call('POST', `${path}/${name}/reset_password`);
  return world.call('DELETE', `${path}/${name}`);
};

const changeDatabases: Operation = async (world, tenant, random) => {
  const path = of(tenant, `/branches/${tenant.branchId}/databases`);
  const found = (await list(world, path, 'databases')).filter(({ name }) => name.startsWith('side'));
  const database = { name: `side${random.below(1e9)}`, owner_name: 'neondb_owner' };
  if (found.length < 2) return world.call('POST', path, { database });
  return world.call('DELETE', `${path}/${random.pick(found).name}`);
};

const changeReplicas: Operation = async (world, tenant, random) => {
  const all = await world.endpointsOf(tenant.projectId).catch(() => []);
  const replicas = all.filter(({ branch_id, type }) => branch_id === tenant.branchId && type === 'read_only');
  const endpoint = { branch_id: tenant.branchId, type: 'read_only' };
  if (replicas.length < replicasMax) return world.call('POST', of(tenant, '/endpoints'), { endpoint });
  return world.call('DELETE', of(tenant, `/endpoints/${random.pick(replicas).id}`));
};

const wakeAnother: Operation = async (world, tenant, random) => {
  const all = await world.endpointsOf(tenant.projectId).catch(() => []);
  const others = all.filter(({ id }) => id !== tenant.endpointId);
  if (others.length === 0) return;
  const action = random.pick(['start', 'suspend', 'restart']);
  await world.call('POST', of(tenant, `/endpoints/${random.pick(others).id}/${action}`));
};

const changeProjects: Operation = async (world, _tenant, random) => {
  const kept = new Set([...world.spared, ...world.tenants.map(({ projectId }) => projectId)]);
  const others = (await list(world, '/projects?limit=100', 'projects')).filter(({ id }) => !kept.has(id));
  const project = { name: `side ${random.below(1e9)}` };
  if (others.length < projectsMax) return world.call('POST', '/projects', { project });
  return world.call('DELETE', `/projects/${random.pick(others).id}`);
};

const operations: readonly Operation[] = [
  onMainCompute('suspend'),
  onMainCompute('start'),
  onMainCompute('restart'),
  changeSettings,
  makeBranch,
  makeBranch,
  removeBranch,
  restoreBranch,
  takeSnapshot,
  restoreSnapshot,
  changeRoles,
  changeRoles,
  changeDatabases,
  changeReplicas,
  changeReplicas,
  wakeAnother,
  changeProjects,
];

/** Goes on until it is stopped; can be held, so that everything comes to its end. */
export class Operator {
  readonly #world: World;
  readonly #random: Random;
  readonly #betweenMs: number;
  #isHeld = false;
  #isOver = false;
  #current: Promise<unknown> = Promise.resolve();
  readonly #done: Promise<void>;

  constructor(world: World, random: Random, betweenMs: number) {
    this.#world = world;
    this.#random = random;
    this.#betweenMs = betweenMs;
    this.#done = this.#work();
  }

  async hold(): Promise<void> {
    this.#isHeld = true;
    await this.#current;
  }

  goOn(): void {
    this.#isHeld = false;
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#done;
  }

  async #work(): Promise<void> {
    while (!this.#isOver) {
      await thinkTime(this.#random.between(this.#betweenMs / 2, this.#betweenMs));
      if (this.#isHeld || this.#isOver) continue;
      const operation = this.#random.pick(operations);
      this.#current = operation(this.#world, this.#random.pick(this.#world.tenants), this.#random);
      await this.#current;
    }
  }
}
