/** Computes: sleep and wake, size, replicas, restart, move, deletion; what others do shows by itself. */
import { expect, test } from 'vitest';
import {
  at,
  branchIdOf,
  branchNode,
  button,
  choose,
  confirm,
  dialog,
  newPage,
  open,
  ownProject,
  row,
  runSql,
  story,
  walkTo,
} from './story.ts';

const endpoints = async () => (await story().program.api('GET', at('/endpoints'))).body.endpoints;

async function startsSoFar(): Promise<number> {
  const { operations } = (await story().program.api('GET', at('/operations'))).body;
  return operations.filter(({ action }: { action: string }) => action === 'start_compute').length;
}

export function computes(): void {
  test('are suspended and woken by a query; looking at tables wakes none', async () => {
    const { page, visitor } = story();
    await ownProject({ invoices: true });
    const tables = await newPage(visitor);
    await tables.goto(at('/tables'));
    await tables.getByRole('gridcell', { name: 'Ada' }).waitFor();
    await open(at());
    await branchNode('main').getByRole('button', { name: 'Suspend' }).click();
    await branchNode('main').getByText('Idle', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Operations', exact: true }).click();
    await row(/^Suspended the compute of main finished/).waitFor();
    await tables.close();
    expect((await endpoints())[0].current_state).toBe('idle');
    const watching = await newPage(visitor);
    await watching.goto(at());
    await watching.getByText('Idle', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'SQL editor' }).click();
    await runSql('select 40 + 2 as answer');
    await page.getByRole('gridcell', { name: '42' }).waitFor();
    await watching.getByText('Active', { exact: true }).waitFor();
    await watching.close();
  });

  test('get a range of sizes, and the change shows until it is done', async () => {
    const { page } = story();
    await ownProject();
    await open(at());
    const main = branchNode('main');
    await choose('Edit compute', main);
    await page.getByLabel('Autoscaling').check();
    const largest = page.getByLabel('Largest size');
    await largest.focus();
    for (let i = 0; i < 3; i += 1) await largest.press('ArrowRight');
    await page.getByText('2 vCPU · 8 GB').waitFor();
    await confirm('Save');
    await main.getByText('0.25 – 2 CU').waitFor();
    await main.getByRole('status').waitFor({ state: 'detached' });
    await main.getByText('Active', { exact: true }).waitFor();
    expect((await endpoints())[0]).toMatchObject({ autoscaling_limit_min_cu: 0.25, autoscaling_limit_max_cu: 2 });
  });

  test('are restarted, and named, after a question', async () => {
    const main = branchNode('main');
    await ownProject();
    await open(at());
    await main.getByText('Active', { exact: true }).waitFor();
    const before = await startsSoFar();
    await choose('Restart compute', main);
    await confirm('Restart');
    await story().program.settle(story().project.id);
    expect(await startsSoFar()).toBe(before + 1);
    await main.getByText('Active', { exact: true }).waitFor();
    await choose('Edit compute', main);
    await dialog().getByLabel('Name').fill('front');
    await dialog().getByLabel('Sleeps').selectOption('-1');
    await confirm('Save');
    await main.getByText('front', { exact: true }).waitFor();
    await main.getByRole('link', { name: 'main' }).click();
    await story().page.getByText('always on').waitFor();
  });

  test('get a read replica, which is deleted again', async () => {
    const main = branchNode('main');
    await ownProject();
    await open(at());
    await choose('Add read replica', main);
    await confirm('Add');
    await main.getByText('1 replica', { exact: true }).waitFor();
    await walkTo(at(`/branches/${await branchIdOf('main')}`));
    const replica = story().page.locator('.compute').filter({ hasText: 'Read replica' });
    await replica.getByText('Active', { exact: true }).waitFor();
    expect(await endpoints()).toHaveLength(2);
    await choose('Delete compute', replica);
    await confirm('Delete compute');
    await replica.waitFor({ state: 'detached' });
  });

  test('show without a reload what somebody else does', async () => {
    const { page, program } = story();
    await ownProject();
    const [{ id }] = await endpoints();
    await program.api('PATCH', at(`/endpoints/${id}`), { endpoint: { name: 'front' } });
    await open(at());
    await branchNode('main').getByText('front', { exact: true }).waitFor();
    const { body } = await program.api('POST', at('/branches'), { branch: { name: 'from-elsewhere' } });
    await branchNode('from-elsewhere').waitFor();
    await choose('Move compute', branchNode('main'));
    await dialog().getByLabel('To branch').selectOption({ label: 'from-elsewhere' });
    await confirm('Move');
    await branchNode('from-elsewhere').getByText('front', { exact: true }).waitFor();
    await button('Add compute', branchNode('main')).waitFor();
    await choose('Move compute', branchNode('from-elsewhere'));
    await dialog().getByLabel('To branch').selectOption({ label: 'main' });
    await confirm('Move');
    await branchNode('main').getByText('front', { exact: true }).waitFor();
    await program.settle(story().project.id);
    await program.api('DELETE', at(`/branches/${body.branch.id}`));
    // Without a compute to stop no operation tells of it, and the next look does.
    await branchNode('from-elsewhere').waitFor({ state: 'detached' });
    expect(new URL(page.url()).pathname).toBe(at());
  });
}
