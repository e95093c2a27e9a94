/** The setup of the contract's tests: a subject, and one project with a branch and an endpoint on it. */
import { expect, vi } from 'vitest';
import { type BranchId, newBranchId, newEndpointId, newSecret } from '../../lib/ids.ts';
import type { ComputeAddress, ComputeLimits } from '../../lib/model.ts';
import { buildVerifier } from '../../lib/scram-verifier.ts';
import type {
  BranchCopy,
  BranchReceipt,
  CatalogChange,
  ComputeDriver,
  ComputeObservation,
  ComputeRef,
  ComputeSpec,
  TenantRef,
} from '../interface/driver.ts';
import type { Login } from '../server/admin-session.ts';

export interface DriverSubject {
  readonly driver: ComputeDriver;
  readonly pgVersion: number;
  /** A new driver object over the same world, as after a restart of Catnap. */
  reopen(): ComputeDriver;
  /** A project that no test has used before. */
  newTenant(): TenantRef;
  /** Kills the process of a compute, as an accident would. */
  kill(observation: ComputeObservation): void | Promise<void>;
  /** What keeps its servers starts one that died again by itself. */
  readonly revives?: boolean;
  /** Names of whatever is left of projects; empty when nothing is. */
  leftovers(): Promise<string[]>;
  /** Called when every project has been removed. */
  close(): Promise<void>;
  query?(address: ComputeAddress, login: Login, text: string): Promise<Record<string, unknown>[]>;
}

export const password = 'npg_contract';
export const tempDiskBytes = 20 * 1024 ** 3;
export const limits: ComputeLimits = {
  cpus: 2,
  memoryBytes: 1024 ** 3,
  processes: 200,
  mayGrow: false,
  settings: {},
};
export const verifier = buildVerifier(password);
export const noChange: CatalogChange = { roles: [], databases: [], dropDatabases: [], dropRoles: [] };
export const ownerAndDatabase: CatalogChange = {
  ...noChange,
  roles: [{ name: 'owner', verifier }],
  databases: [{ name: 'app', renameFrom: null, ownerName: 'owner' }],
};

/** One project with a branch and an endpoint, and the steps that most tests begin with. */
export class Bench {
  readonly subject: DriverSubject;
  readonly driver: ComputeDriver;
  readonly ref: ComputeRef;
  readonly adminSecret = newSecret();

  constructor(subject: DriverSubject) {
    this.subject = subject;
    this.driver = subject.driver;
    this.ref = { ...subject.newTenant(), branchId: newBranchId(), endpointId: newEndpointId() };
  }

  spec(generation: number, change: Partial<ComputeSpec> = {}): ComputeSpec {
    const { pgVersion } = this.subject;
    const { adminSecret, ref } = this;
    return { ...ref, generation, pgVersion, settings: {}, tempDiskBytes, limits, adminSecret, ...change };
  }

  async createBranch(branchId = this.ref.branchId): Promise<BranchReceipt> {
    const { pgVersion } = this.subject;
    const made = await this.driver.createBranch({ ...this.ref, branchId, pgVersion, source: { kind: 'template' } });
    return made.receipt;
  }

  async cloneBranch(branchId = newBranchId()): Promise<BranchReceipt> {
    return (await this.copyBranch(branchId)).receipt;
  }

  copyBranch(branchId: BranchId): Promise<BranchCopy> {
    const source = { kind: 'branch', branchId: this.ref.branchId } as const;
    return this.driver.createBranch({ ...this.ref, branchId, pgVersion: this.subject.pgVersion, source });
  }

  async start(generation: number, change: Partial<ComputeSpec> = {}): Promise<ComputeObservation> {
    const spec = this.spec(generation, change);
    await this.driver.start(spec);
    return this.untilRunning(spec);
  }

  async started(): Promise<ComputeObservation> {
    await this.createBranch();
    return this.start(1);
  }

  untilRunning(ref: ComputeRef = this.ref): Promise<ComputeObservation> {
    return untilRunning(this.driver, ref);
  }

  /** Runs as a tenant's role; null when the subject has no real servers. */
  async query(on: ComputeObservation, text: string, login: Partial<Login> = {}) {
    if (!this.subject.query || !on.address) return null;
    const full = { username: 'owner', password, database: 'app', ...login };
    return this.subject.query(on.address, full, text);
  }

  /** What a suspend returns of a server's last state: nothing, where nobody can be certain of it. */
  ifCertain<T>(held: T): T | null {
    return this.driver.cannot?.last_state === undefined ? held : null;
  }

  get hasSql(): boolean {
    return this.subject.query !== undefined;
  }

  /** After a kill: until the server is gone, or where it is started again by itself, until another one runs. */
  async untilDead(killed: ComputeObservation): Promise<void> {
    if (this.subject.revives)
      await expect.poll(() => this.driver.observe(this.ref)).not.toMatchObject({ pid: killed.pid });
    else await expect.poll(async () => (await this.driver.observe(this.ref)).state).toBe('absent');
  }

  async listed(): Promise<ComputeObservation | undefined> {
    return (await this.driver.list()).find(({ endpointId }) => endpointId === this.ref.endpointId);
  }
}

/** Also for hooks, where `expect.poll` does not work. */
export function untilRunning(driver: ComputeDriver, ref: ComputeRef): Promise<ComputeObservation> {
  const running = async () => {
    const seen = await driver.observe(ref);
    expect(seen.state).toBe('running');
    return seen;
  };
  return vi.waitFor(running, { timeout: 150_000, interval: 10 });
}
