/**
 * The console in a browser, over the whole program with real Postgres servers. One story in the order of this file:
 * each journey begins where the one before has left off.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { account } from './journeys/account.ts';
import { auth } from './journeys/auth.ts';
import { branches } from './journeys/branches.ts';
import { computes } from './journeys/computes.ts';
import { data } from './journeys/data.ts';
import { everyPage } from './journeys/every-page.ts';
import { firstQuery } from './journeys/first-query.ts';
import { at, beginStory, branchIdOf, button, dialog, endStory, photograph, story, walkTo } from './journeys/story.ts';
import { trouble } from './journeys/trouble.ts';

beforeAll(beginStory);

afterEach(async ({ task }) => {
  if (task.result?.state === 'fail') await photograph(story().page, `failed ${task.name.slice(0, 40)}`);
});

afterAll(endStory);

describe('from the first visit to the first query', firstQuery);
describe('computes', computes);
describe('branches', branches);
describe('data', data);
describe('accounts', account);
describe('auth', auth);
describe('every page', everyPage);
describe('when something is wrong', trouble);

test('a project is deleted with its name typed, once no branch is protected', async () => {
  const { page, program } = story();
  await walkTo(at('/settings'));
  await button('Delete project').click();
  await page.getByLabel(/^Type/).fill('billing');
  await button('Delete project', dialog()).click();
  await dialog()
    .getByText(/cannot delete a project with a protected branch/)
    .waitFor();
  await program.api('PATCH', at(`/branches/${await branchIdOf('feature-x')}`), { branch: { protected: false } });
  await button('Delete project', dialog()).click();
  await page.getByText('Project billing is deleted.').waitFor();
  expect(new URL(page.url()).pathname).toBe('/');
});

test('sign-out ends the sign-in, and no page has thrown anything meanwhile', async () => {
  const { page, faults } = story();
  await button('Sign out').click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await page.goto('/keys');
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  expect(faults).toEqual([]);
});
