/** Quotas: set in the settings, used up, explained on the dashboard, removed. */
import { expect, test } from 'vitest';
import { eventually } from '../../helpers/eventually.ts';
import { at, button, open, ownProject, photograph, story } from './story.ts';

export function quotas(): void {
  test('that is used up says why the computes are suspended, and can be removed', async () => {
    const { page, program } = story();
    await ownProject();
    await open(at('/settings'));
    await page.getByLabel('Time awake, in seconds').fill('1');
    await button('Save quotas').click();
    await page.getByText('Saved.').waitFor();
    const project = async () => (await program.api('GET', at())).body.project;
    expect((await project()).settings.quota).toEqual({ active_time_seconds: 1 });
    await eventually(async () => expect((await project()).quota_exceeded).toBeDefined());
    await open(at());
    await page.getByText(/used up its quota active_time_seconds/).waitFor();
    await page.getByText('Idle', { exact: true }).waitFor();
    await photograph(page, 'quota used up');
    await page.getByRole('link', { name: 'Quotas' }).click();
    await page
      .getByText(/used this month/)
      .first()
      .waitFor();
    await photograph(page, 'quota settings', true);
    await page.getByLabel('Time awake, in seconds').fill('');
    await button('Save quotas').click();
    await page.getByText('A quota is used up').waitFor({ state: 'detached' });
    expect((await project()).settings.quota).toEqual({});
  });
}
