/** Makes a branch's directory: a clone, its record, and the secret that its server still has from the template. */
import { chmod, chown, mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { BranchReceipt, BranchSpec } from '../driver.ts';
import { cloneCluster } from './clone.ts';
import { renameDurably, syncTree } from './copy-tree.ts';
import { dataDirectory, type Layout } from './layout.ts';
import { readBranchRecord, readFirstSecret, writeBranchRecord, writeFirstSecret } from './records.ts';
import type { Template } from './template.ts';
import type { TenantDirectories } from './tenant-directories.ts';

export interface BranchMaking {
  readonly spec: BranchSpec;
  readonly uid: number | null;
  readonly template: Template;
  readonly layout: Layout;
  readonly tenants: TenantDirectories;
}

interface Source {
  readonly dataDirectory: string;
  readonly sourceOwner: number | null;
  readonly firstSecret: string | null;
}

/** The caller holds the branch, which does not exist yet, and keeps the source asleep. */
export async function createBranchDirectory(making: BranchMaking): Promise<BranchReceipt> {
  const { spec, uid, layout, tenants } = making;
  const directory = layout.branch(spec.projectId, spec.branchId);
  const source = await findSource(making);
  await tenants.ensureProject(spec);
  const folder = layout.branches(spec.projectId);
  await removeUnfinished(folder, spec.branchId);
  // 0700 and the parent's own until it is whole: nobody else can see or touch it.
  const unfinished = await mkdtemp(join(folder, `.${spec.branchId}-`));
  try {
    const receipt = await cloneCluster({
      source: source.dataDirectory,
      target: dataDirectory(unfinished),
      owner: uid,
      sourceOwner: source.sourceOwner,
    });
    await writeBranchRecord(unfinished, { pgVersion: spec.pgVersion, receipt });
    if (source.firstSecret !== null) await writeFirstSecret(unfinished, source.firstSecret);
    if (uid !== null) {
      await chown(unfinished, 0, uid);
      await chmod(unfinished, 0o710);
    }
    // Everything must be on disk before anybody is told that the branch is there.
    await syncTree(unfinished);
    await renameDurably(unfinished, directory);
    return receipt;
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    throw error;
  }
}

async function findSource({ spec, uid, template, layout }: BranchMaking): Promise<Source> {
  if (spec.source.kind === 'template') {
    return { dataDirectory: template.dataDirectory, sourceOwner: null, firstSecret: template.secret };
  }
  const parent = layout.branch(spec.projectId, spec.source.branchId);
  const record = await readBranchRecord(parent);
  if (!record) throw new Error(`branch ${spec.source.branchId} has no data`);
  if (record.pgVersion !== spec.pgVersion) {
    throw new Error(`branch ${spec.source.branchId} is of Postgres ${record.pgVersion}, not ${spec.pgVersion}`);
  }
  return {
    dataDirectory: dataDirectory(parent),
    sourceOwner: uid,
    firstSecret: await readFirstSecret(parent),
  };
}

/** What a killed Catnap left of an earlier attempt. */
async function removeUnfinished(folder: string, branchId: string): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name.startsWith(`.${branchId}-`));
  for (const name of names) await rm(join(folder, name), { recursive: true, force: true });
}
