/**
 * Names, cells and messages that are HTML, scripts or URLs with code, on every page of the console in a real browser.
 * None of it runs, none of it becomes an element, and every page comes with a policy that would not let it run.
 */
import pg from 'pg';
import type { BrowserContext, Page } from 'playwright-core';
import { startBrowser } from '../../helpers/browser.ts';
import { Program } from '../../helpers/program.ts';
import type { PartReport } from './report.ts';

const payloads = [
  '<img src=zq7 onerror=pwned()>',
  '<script>pwned()</script>',
  '"><svg onload=pwned()>',
  "';pwned();'",
  '</title><script>pwned()</script>',
  'javascript:pwned()',
  '<iframe srcdoc="<script>parent.pwned()</script>">',
  '<a href="javascript:pwned()" onclick=pwned()>x</a>',
  '{{constructor.constructor("pwned()")()}}',
  '<math><mtext><style><img src=zq7 onerror=pwned()>',
];
/** Elements that only a payload can have made. */
const planted =
  'document.querySelectorAll(\'[src="zq7"],[onerror],[onload],[onclick],[srcdoc],[href^="javascript:"],svg[onload]\').length';

interface Stage {
  readonly program: Program;
  readonly projectId: string;
  readonly branchId: string;
  readonly uri: string;
}

interface Found {
  readonly leaks: string[];
  readonly changes: string[];
  shown: number;
  looks: number;
}

export async function visitEveryPage(): Promise<PartReport> {
  const program = await Program.create();
  const browser = await startBrowser();
  const found: Found = { leaks: [], changes: [], shown: 0, looks: 0 };
  try {
    await program.start();
    for (const [at, payload] of payloads.entries()) {
      process.stdout.write(`isolation browser: ${at} of ${payloads.length}\n`);
      const stage = await furnish(program, payload, at);
      const context = await browser.visit({ baseURL: `http://localhost:${program.httpPort}` });
      await look(context, stage, payload, found);
      await context.close();
      await program.removeProject(stage.projectId);
    }
    // On most pages there is one: otherwise nothing would show that they were looked at.
    if (found.shown < payloads.length * 5) found.changes.push(`payloads were seen on ${found.shown} pages only`);
  } finally {
    await browser.close();
    await program.destroy();
  }
  const { leaks, changes, shown, looks } = found;
  const rows = [
    ['payloads', payloads.length],
    ['pages looked at', looks],
    ['of them with the payload as text', shown],
  ];
  const table = { title: 'Scripts in names and cells', columns: ['', 'count'], rows };
  return { part: 'browser', attempts: looks, leaks, changes, tables: [table] };
}

/** Everything that takes a name has the payload for one. */
async function furnish(program: Program, payload: string, at: number): Promise<Stage> {
  const post = async (path: string, body: object) => {
    const reply = await program.api('POST', path, body);
    // Some names are refused for what is in them, which is as good.
    if (reply.status >= 500) throw new Error(`POST ${path} -> ${reply.status}`);
    return reply.body;
  };
  const made = await post('/projects', { project: { name: `${payload} project` } });
  const projectId: string = made.project.id;
  const branchId: string = made.branch.id;
  const branch = `/projects/${projectId}/branches/${branchId}`;
  await program.settle(projectId);
  await post(`/projects/${projectId}/branches`, { branch: { name: `${payload} branch` } });
  await post(`${branch}/roles`, { role: { name: `${payload} role`.slice(0, 60) } });
  await post(`${branch}/databases`, {
    database: { name: `${payload} base`.slice(0, 60), owner_name: made.roles[0].name },
  });
  await post('/api_keys', { key_name: `${payload} ${at}`.slice(0, 60) });
  await post(`${branch}/snapshot?name=${encodeURIComponent(payload)}`, {});
  await program.api('PATCH', `/projects/${projectId}/endpoints/${made.endpoints[0].id}`, {
    endpoint: { name: payload },
  });
  await post('/projects/auth/create', { auth_provider: 'stack', project_id: projectId, branch_id: branchId });
  await program.settle(projectId);
  await post('/projects/auth/user', {
    auth_provider: 'stack',
    project_id: projectId,
    email: `ann-${at}@example.com`,
    name: payload,
  });
  const uri: string = made.connection_uris[0].connection_uri;
  const client = new pg.Client({ connectionString: uri });
  await client.connect();
  const name = pg.escapeIdentifier(payload.slice(0, 60));
  await client.query(`create table ${name} (${name} text)`);
  await client.query(`insert into ${name} values ($1)`, [payload]);
  await client.end();
  return { program, projectId, branchId, uri };
}

const pagesOf = ({ projectId, branchId }: Stage) => [
  '/',
  '/keys',
  '/organization',
  '/deleted',
  '/about',
  ...['', '?connect=default', '/sql', '/tables', '/monitoring', '/data', '/auth', '/operations', '/settings'].map(
    (path) => `/projects/${projectId}${path}`,
  ),
  `/projects/${projectId}/branches/${branchId}`,
];

async function look(context: BrowserContext, stage: Stage, payload: string, found: Found): Promise<void> {
  const { program } = stage;
  const where = { path: '' };
  await context.exposeFunction('pwned', () => found.leaks.push(`${where.path}: ${payload} ran`));
  const page = await context.newPage();
  page.on('dialog', async (dialog) => {
    found.leaks.push(`${where.path}: ${payload} opened a dialog`);
    await dialog.dismiss();
  });
  page.on('console', (message) => {
    if (/Content Security Policy/.test(message.text())) found.changes.push(`${where.path}: ${message.text()}`);
  });
  await page.goto('/');
  await page.getByLabel('API key').fill(await program.apiKey());
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('button', { name: 'New project', exact: true }).waitFor();
  for (const path of pagesOf(stage)) {
    where.path = path;
    const reply = await page.goto(path);
    const policy = reply?.headers()['content-security-policy'] ?? '';
    if (
      !/script-src 'self'|default-src 'none'|default-src 'self'/.test(policy) ||
      /unsafe-inline.*script/.test(policy)
    ) {
      found.changes.push(`${path} has the policy "${policy}"`);
    }
    await page.locator('h1').first().waitFor();
    await page.locator('.skeleton').first().waitFor({ state: 'detached' });
    await inspect(page, path, payload, found);
    if (path.endsWith('/sql')) await runInEditor(page, payload, found);
  }
}

/** As cells, as names of columns, as a notice and as an error. */
async function runInEditor(page: Page, payload: string, found: Found): Promise<void> {
  const literal = pg.escapeLiteral(payload);
  const name = pg.escapeIdentifier(payload.slice(0, 60));
  const texts = [
    `select ${literal} as ${name}, 'zq7 done' as done`,
    `select json_build_object(${literal}, ${literal}) as j, array[${literal}] as a, 'zq7 done' as done`,
    `do $do$ begin raise notice '%', ${literal}; raise exception 'zq7 done %', ${literal}; end $do$`,
  ];
  for (const text of texts) {
    const editor = page.getByLabel('SQL', { exact: true });
    await editor.click();
    await editor.fill(text);
    await page.keyboard.press('Control+Enter');
    await page
      .locator('main')
      .getByText(/^zq7 done|ERROR.*zq7 done|zq7 done </)
      .first()
      .waitFor();
    await inspect(page, `the editor with ${text}`, payload, found);
  }
}

async function inspect(page: Page, path: string, payload: string, found: Found): Promise<void> {
  found.looks += 1;
  const made = await page.evaluate<number>(planted);
  if (made > 0) found.leaks.push(`${path}: ${payload} became ${made} elements`);
  const text = await page.evaluate<string>('document.body.innerText');
  if (text.includes(payload)) found.shown += 1;
}
