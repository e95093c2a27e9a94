import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { newBranchId, newEndpointId, newProjectId } from '../../../../lib/ids.ts';
import { createLayout } from '../home/layout.ts';
import { makeUnfinished } from './create.ts';
import { removeUnfinishedCopies } from './leftovers.ts';

test('copies that a dead Catnap has begun go, and nothing else', async () => {
  const home = await mkdtemp(join(tmpdir(), 'cn-left-'));
  try {
    const layout = createLayout(home);
    const [projectId, branchId, endpointId] = [newProjectId(), newBranchId(), newEndpointId()];
    for (const folder of [
      layout.trash,
      join(layout.branch(projectId, branchId), 'pgdata'),
      layout.replica(projectId, endpointId),
    ]) {
      await mkdir(folder, { recursive: true });
    }
    for (const [folder, name] of [
      [layout.branches(projectId), newBranchId()],
      [layout.endpoint(projectId, endpointId), 'replica'],
    ] as const) {
      await writeFile(join(await makeUnfinished(folder, name), 'half'), 'made');
    }
    await removeUnfinishedCopies(layout);
    expect(await readdir(layout.branches(projectId))).toEqual([branchId]);
    expect(await readdir(layout.branch(projectId, branchId))).toEqual(['pgdata']);
    expect(await readdir(layout.endpoint(projectId, endpointId))).toHaveLength(1);
    expect(await readdir(layout.trash)).toEqual([]);
  } finally {
    await rm(home, { recursive: true });
  }
});

test('a home without projects has none, and is left as it is', async () => {
  const home = await mkdtemp(join(tmpdir(), 'cn-left-'));
  try {
    await writeFile(join(home, '.kept'), '');
    await expect(removeUnfinishedCopies(createLayout(home))).resolves.toBeUndefined();
    expect(await readdir(home)).toEqual(['.kept']);
  } finally {
    await rm(home, { recursive: true });
  }
});
