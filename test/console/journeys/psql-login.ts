/** Letting psql in without a password, from the link in the terminal to the query that runs. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { violationsInBothThemes } from '../../helpers/accessibility.ts';
import { eventually } from '../../helpers/eventually.ts';
import { psqlVersion } from '../../helpers/proxy.ts';
import { button, newPage, ownProject, photograph, story } from './story.ts';

function startPsql(port: number) {
  const child = spawn('psql', ['-h', 'localhost', '-p', String(port), '-U', 'casey', '-Atc', 'select current_user'], {
    env: { PATH: process.env.PATH, PGSSLMODE: 'require' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      text += chunk;
    });
  }
  const linkOf = () => {
    const link = /http\S+\/psql#[\w-]+/.exec(text)?.[0];
    if (link === undefined) throw new Error(`no link yet: ${text}`);
    return link;
  };
  return { link: () => eventually(linkOf), closed: once(child, 'close'), text: () => text };
}

export function psqlLogin(): void {
  test.skipIf(psqlVersion < 14)('psql without a password is let in by a person who signs in first', async () => {
    await ownProject();
    const { browser, baseURL, program, project } = story();
    const psql = startPsql(program.pgPort);
    const visitor = await browser.visit({ baseURL });
    const page = await newPage(visitor);
    const link = await psql.link();
    await page.goto(link);
    await page.getByLabel('API key').fill(await program.apiKey());
    await button('Sign in', page).click();
    await page.getByRole('heading', { name: 'Who waits' }).waitFor();
    await page.getByText(/^(127\.0\.0\.1|::1)$/).waitFor();
    await page.getByText('user casey, database casey').waitFor();
    await page.getByLabel('Project').selectOption({ label: project.name });
    await page.getByLabel('Database').selectOption('neondb');
    await photograph(page, 'psql login', true);
    expect(await violationsInBothThemes(page)).toEqual([]);
    await button('Let it in', page).click();
    await page.getByText('You are logged in.').waitFor();
    await photograph(page, 'psql login done');
    expect(await psql.closed).toEqual([0, null]);
    expect(psql.text()).toMatch(/\nneondb_owner\n$/);
    await page.reload();
    await page.getByText('You are logged in.').waitFor();
    const refused = startPsql(program.pgPort);
    await page.goto('/about');
    await page.goto(await refused.link());
    await button('Refuse', page).click();
    await page.getByText('Refused.').waitFor();
    await refused.closed;
    expect(refused.text()).toContain('FATAL:  the login was refused in the console');
    await page.goto(`/psql#${'x'.repeat(43)}`);
    await page.getByText(/this link was used before/i).waitFor();
    await visitor.close();
  });
}
