/** What the demo works with: the API with a key, SQL over HTTP, and the patience to wait for operations. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const command = fileURLToPath(new URL('../../bin/catnap.mjs', import.meta.url));
const askAgainMs = 200;
const settleMsMax = 300_000;

export async function openDemo({ url = `http://localhost:${process.env.CATNAP_HTTP_PORT ?? 7070}`, key = readKey() }) {
  const say = (line) => console.log(`demo: ${line}`);

  async function api(method, path, body) {
    const response = await reach(`${url}/api/v2${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const reply = text === '' ? {} : JSON.parse(text);
    if (!response.ok) throw new Error(`${method} ${path}: ${reply.message} (HTTP ${response.status})`);
    return reply;
  }

  /** A link that signs in to the console, once. */
  async function consoleLink() {
    const headers = { authorization: `Bearer ${key}` };
    return (await reach(`${url}/console/link`, { method: 'POST', headers })).json();
  }

  /** One statement, or several as one transaction. */
  async function sql(uri, statements) {
    const texts = [statements].flat();
    const body =
      texts.length === 1 ? { query: texts[0], params: [] } : { queries: texts.map((query) => ({ query, params: [] })) };
    const response = await reach(`${url}/sql`, {
      method: 'POST',
      headers: { 'neon-connection-string': uri, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const reply = await response.json();
    if (!response.ok) throw new Error(`SQL was refused: ${reply.message}`);
    return reply.rows ?? [];
  }

  /** Until no operation of the project is under way; a failed one has come to its end, too. */
  async function settle(projectId) {
    const deadline = Date.now() + settleMsMax;
    for (;;) {
      const { operations } = await api('GET', `/projects/${projectId}/operations?limit=100`);
      if (operations.every(({ status }) => ['finished', 'error', 'cancelled', 'skipped'].includes(status))) return;
      if (Date.now() > deadline) throw new Error(`operations of project ${projectId} did not end within 5 minutes`);
      await new Promise((resolve) => setTimeout(resolve, askAgainMs));
    }
  }

  /** The project of this name, made if it is not there, with its default branch. */
  async function project(name, settings = {}) {
    const found = (await api('GET', `/projects?limit=400&search=${encodeURIComponent(name)}`)).projects.find(
      (one) => one.name === name,
    );
    const id = found?.id ?? (await api('POST', '/projects', { project: { name, ...settings } })).project.id;
    if (found === undefined) await settle(id);
    say(`project ${name} (${id}) ${found === undefined ? 'is made' : 'is there already'}`);
    return { id, main: (await branchesOf(id)).find((branch) => branch.default), isNew: found === undefined };
  }

  async function branchesOf(projectId) {
    const found = [];
    for (let cursor = ''; ; ) {
      const query = `limit=1000${cursor && `&cursor=${encodeURIComponent(cursor)}`}`;
      const { branches, pagination } = await api('GET', `/projects/${projectId}/branches?${query}`);
      found.push(...branches);
      if (branches.length === 0 || !pagination?.next || pagination.next === cursor) return found;
      cursor = pagination.next;
    }
  }

  async function uriOf(projectId, branchId, role = 'neondb_owner') {
    const query = new URLSearchParams({ branch_id: branchId, database_name: 'neondb', role_name: role });
    return (await api('GET', `/projects/${projectId}/connection_uri?${query}`)).uri;
  }

  await api('GET', '/projects?limit=1');
  return { url, say, api, consoleLink, sql, settle, project, branchesOf, uriOf };
}

async function reach(url, init) {
  try {
    return await fetch(url, init);
  } catch {
    throw new Error(`Catnap does not answer at ${new URL(url).origin}: start it with \`npm start\`, or pass --api-url`);
  }
}

function readKey() {
  const { status, stdout, stderr } = spawnSync(process.execPath, [command, 'keys', 'show', '--raw'], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stderr.trim().replace(/^catnap: /, ''));
  return stdout.trim();
}
