/**
 * A branch of a database for a pull request, in a pipeline of GitHub or GitLab: `create`, `diff` or `delete`. It needs
 * Node 20 and nothing else. Settings are environment variables, which `action.yml` and docs/pipelines.md name.
 */
import { appendFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

const { env } = process;
const marker = '<!-- catnap: schema of the branch -->';
const ended = ['finished', 'error', 'cancelled', 'skipped'];
/** GitHub takes 65,536 characters, GitLab a million. */
const diffLengthMax = 60_000;

const commands = { create, diff, delete: remove };
const command = commands[process.argv[2]];
try {
  if (command === undefined) throw new Error(`say what to do: ${Object.keys(commands).join(', ')}`);
  await command();
} catch (error) {
  console.error(`catnap: ${error.message}`);
  process.exitCode = 1;
}

async function create() {
  const project = await findProject();
  const found = await findBranch(project);
  const branch = found ?? (await makeBranch(project));
  const path = `/projects/${project.id}/branches/${branch.id}`;
  const database = await findDatabase(path);
  const uri = (await findUri(project, branch, database)) ?? (await uriOfItsOwn(project, branch, database));
  console.log(`${found === undefined ? 'made' : 'found'} the branch ${branch.name} (${branch.id})`);
  give({ 'branch-id': branch.id, uri });
}

/** Nothing where the key does not get the password: that of the parent, with which a branch begins. */
async function findUri(project, branch, database, expected = [403]) {
  const query = new URLSearchParams({
    branch_id: branch.id,
    database_name: database.name,
    role_name: database.owner_name,
  });
  const reply = await api('GET', `/projects/${project.id}/connection_uri?${query}`, undefined, expected);
  return reply?.uri;
}

/** Also for a branch that was found: the run that made it may have ended before it came to the password. */
async function uriOfItsOwn(project, branch, database) {
  const role = `/projects/${project.id}/branches/${branch.id}/roles/${encodeURIComponent(database.owner_name)}`;
  await untilDone(await api('POST', `${role}/reset_password`));
  return findUri(project, branch, database, []);
}

async function diff() {
  const project = await findProject();
  const branch = await findBranch(project);
  if (branch === undefined) throw new Error(`there is no branch ${required('CATNAP_BRANCH')}: create it first`);
  const path = `/projects/${project.id}/branches/${branch.id}`;
  const { name } = await findDatabase(path);
  const reply = await api('GET', `${path}/compare_schema?db_name=${encodeURIComponent(name)}`);
  const text = describe(branch, reply.diff ?? '');
  console.log(text);
  await comment(text);
}

async function remove() {
  const project = await findProject();
  const branch = await findBranch(project);
  if (branch === undefined) return console.log('there is no such branch any more');
  await untilDone(await api('DELETE', `/projects/${project.id}/branches/${branch.id}`));
  console.log(`deleted the branch ${branch.name} (${branch.id})`);
}

async function makeBranch(project) {
  const parent = env.CATNAP_PARENT ? await findBranch(project, env.CATNAP_PARENT) : null;
  if (parent === undefined) throw new Error(`there is no branch ${env.CATNAP_PARENT} to make it from`);
  const days = Number(env.CATNAP_EXPIRES_IN_DAYS || 14);
  if (!(days > 0 && days <= 30)) throw new Error('CATNAP_EXPIRES_IN_DAYS must be a number of days, at most 30');
  const made = await api('POST', `/projects/${project.id}/branches`, {
    branch: {
      name: required('CATNAP_BRANCH'),
      parent_id: parent?.id,
      expires_at: new Date(Date.now() + days * 86_400_000).toISOString(),
    },
    endpoints: [{ type: 'read_write' }],
  });
  await untilDone(made);
  return made.branch;
}

/** By id or name; the only one where none is named. */
async function findProject() {
  const wanted = env.CATNAP_PROJECT;
  if (wanted) {
    // 400 is for a name that cannot be an id, such as one with a space.
    const byId = await api('GET', `/projects/${encodeURIComponent(wanted)}`, undefined, [400, 404]);
    if (byId !== null) return byId.project;
  }
  const { projects } = await api('GET', '/projects?limit=400');
  const fitting = wanted ? projects.filter(({ name }) => name === wanted) : projects;
  if (fitting.length === 1) return fitting[0];
  throw new Error(`${fitting.length} projects fit: CATNAP_PROJECT must be the id or the name of one`);
}

async function findBranch(project, name = required('CATNAP_BRANCH')) {
  const { branches } = await api('GET', `/projects/${project.id}/branches?search=${encodeURIComponent(name)}`);
  return branches.find((branch) => branch.name === name);
}

async function findDatabase(path) {
  const { databases } = await api('GET', `${path}/databases`);
  const wanted = env.CATNAP_DATABASE;
  const found = wanted ? databases.find(({ name }) => name === wanted) : databases[0];
  if (found === undefined) throw new Error(`the branch has no database${wanted ? ` ${wanted}` : ''}`);
  return found;
}

async function untilDone({ operations = [] }) {
  for (const { id, project_id: projectId } of operations) {
    for (let pauseMs = 50; ; pauseMs = Math.min(pauseMs * 1.5, 2_000)) {
      const found = await api('GET', `/projects/${projectId}/operations/${id}`, undefined, [404]);
      if (found === null || ended.includes(found.operation.status)) {
        const { action, status, error } = found?.operation ?? {};
        if (status === 'error' || status === 'cancelled') throw new Error(`${action} ended as ${status}: ${error}`);
        break;
      }
      await pause(pauseMs);
    }
  }
}

/** Null for one of the statuses that are `expected`. */
async function api(method, path, body, expected = []) {
  const base = required('CATNAP_API_URL')
    .replace(/\/+$/, '')
    .replace(/\/api\/v2$/, '');
  return request(
    method,
    `${base}/api/v2${path}`,
    { authorization: `Bearer ${required('CATNAP_API_KEY')}` },
    body,
    expected,
  );
}

async function request(method, url, headers, body, expected = []) {
  const reply = await fetch(url, {
    method,
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(60_000),
  }).catch((error) => {
    // "fetch failed" alone says neither where nor why.
    throw new Error(`${new URL(url).origin} does not answer: ${error.cause?.message || error.message}`);
  });
  const text = await reply.text();
  if (expected.includes(reply.status)) return null;
  if (!reply.ok) throw new Error(`${method} ${new URL(url).pathname} -> ${reply.status}: ${messageOf(text)}`);
  return text === '' ? {} : JSON.parse(text);
}

function messageOf(text) {
  try {
    return JSON.parse(text).message;
  } catch {
    return text.slice(0, 200);
  }
}

function describe(branch, text) {
  const title = `**Schema of the database branch \`${branch.name}\`**`;
  if (text === '') return `${marker}\n${title}: the same as that of its parent.\n`;
  const isWhole = text.length <= diffLengthMax;
  // A fence that is longer than any in the text: a comment in the schema could end it otherwise.
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  const shown = isWhole ? text : text.slice(0, diffLengthMax);
  return `${marker}\n${title}\n\n${fence}diff\n${shown}\n${fence}\n${isWhole ? '' : '\nThe rest is left out.\n'}`;
}

/** One comment, which is changed from then on. Without a pull request the output is all there is. */
async function comment(body) {
  const place = env.GITLAB_TOKEN ? gitlab() : github();
  if (place === null) return;
  for (let page = 1; ; page++) {
    const found = await request('GET', `${place.list}?per_page=100&page=${page}`, place.headers);
    const own = found.find((one) => one.body.startsWith(marker));
    if (own !== undefined) return request(place.method, place.change(own.id), place.headers, { body });
    if (found.length < 100) return request('POST', place.list, place.headers, { body });
  }
}

function github() {
  if (!env.PULL_REQUEST || !env.GITHUB_TOKEN) return null;
  const comments = `${env.GITHUB_API_URL ?? 'https://api.github.com'}/repos/${required('GITHUB_REPOSITORY')}/issues`;
  return {
    list: `${comments}/${env.PULL_REQUEST}/comments`,
    change: (id) => `${comments}/comments/${id}`,
    method: 'PATCH',
    headers: { authorization: `Bearer ${env.GITHUB_TOKEN}`, accept: 'application/vnd.github+json' },
  };
}

function gitlab() {
  if (!env.CI_MERGE_REQUEST_IID) return null;
  const project = `${required('CI_API_V4_URL')}/projects/${required('CI_PROJECT_ID')}`;
  const notes = `${project}/merge_requests/${env.CI_MERGE_REQUEST_IID}/notes`;
  return {
    list: notes,
    change: (id) => `${notes}/${id}`,
    method: 'PUT',
    headers: { 'private-token': env.GITLAB_TOKEN },
  };
}

/** To the steps that follow; GitLab reads a file of its own. */
function give(values) {
  if (env.GITHUB_OUTPUT) {
    console.log(`::add-mask::${values.uri}`);
    console.log(`::add-mask::${decodeURIComponent(new URL(values.uri).password)}`);
    for (const [name, value] of Object.entries(values)) appendFileSync(env.GITHUB_OUTPUT, `${name}=${value}\n`);
  }
  if (env.CATNAP_DOTENV) {
    const named = { CATNAP_BRANCH_ID: values['branch-id'], DATABASE_URL: values.uri };
    for (const [name, value] of Object.entries(named)) appendFileSync(env.CATNAP_DOTENV, `${name}='${value}'\n`);
  }
}

function required(name) {
  if (!env[name]) throw new Error(`${name} is not set`);
  return env[name];
}
