/**
 * A stand-in for an auth provider elsewhere: answers, and fails, as a Stack deployment does, over real HTTP. It keeps
 * projects, key sets and users in memory; a test can make calls fail, hang, or be lost after they took effect.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

export interface StandInProject {
  readonly id: string;
  readonly adminKey: string;
  isAdminKeyRevoked: boolean;
  readonly displayName: string;
  ownerTeamId: string | null;
  readonly keySets: { id: string; description: string; revokedAt: number | null; secretServerKey: string }[];
  readonly users: Map<string, Record<string, unknown>>;
  readonly domains: Set<string>;
  readonly oauth: Map<string, Record<string, unknown>>;
  readonly webhooks: { url: string; secret: string }[];
}

/** What happens to a call instead of its answer. */
export type Trouble = 'hang' | 'lose the answer' | { readonly status: number; readonly body: unknown };

export interface StandIn {
  readonly url: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly projects: Map<string, StandInProject>;
  readonly calls: string[];
  /** The next `times` calls whose `METHOD /path` begins with this meet with trouble. */
  trouble(call: string, trouble: Trouble, times?: number): void;
  addUser(project: StandInProject, email: string, fields?: Record<string, unknown>): Record<string, unknown>;
  close(): Promise<void>;
}

interface Call {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: Record<string, unknown>;
}

class Refusal extends Error {
  readonly status: number;
  readonly code: string | null;
  constructor(status: number, code: string | null, text: string) {
    super(text);
    this.status = status;
    this.code = code;
  }
}

const key = (prefix: string) => `${prefix}_${randomBytes(23).toString('hex').slice(0, 45)}`;

export async function startStandIn(): Promise<StandIn> {
  const projects = new Map<string, StandInProject>();
  const calls: string[] = [];
  const troubles: { call: string; trouble: Trouble; left: number }[] = [];
  const credentials = { clientId: 'catnap-test', clientSecret: 'secret:with:colons' };
  const server = createServer((request, response) => void serve(request, response));

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const url = new URL(request.url ?? '/', 'http://stand-in');
    const path = url.pathname.replace(/^\/api\/v1/, '');
    const call: Call = {
      method: request.method ?? '',
      path,
      query: url.searchParams,
      headers: request.headers,
      body: text === '' ? {} : JSON.parse(text),
    };
    const name = `${call.method} ${path}`;
    calls.push(name);
    const met = troubles.find((candidate) => candidate.left > 0 && name.startsWith(candidate.call));
    if (met !== undefined) met.left--;
    if (met?.trouble === 'hang') return;
    if (met !== undefined && typeof met.trouble === 'object')
      return send(response, met.trouble.status, met.trouble.body);
    try {
      const [status, body] = answer(projects, credentials, call);
      if (met?.trouble === 'lose the answer') request.socket.destroy();
      else send(response, status, body);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (error.code === null) response.writeHead(error.status, { 'content-type': 'text/plain' }).end(error.message);
      else {
        const details = { message: error.message };
        send(response, error.status, { code: error.code, error: error.message, details }, error.code);
      }
    }
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    ...credentials,
    projects,
    calls,
    trouble: (call, trouble, times = 1) => void troubles.push({ call, trouble, left: times }),
    addUser: (project, email, fields = {}) => addUser(project, { primary_email: email, ...fields }),
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function send(response: ServerResponse, status: number, body: unknown, known?: string): void {
  const headers = known === undefined ? {} : { 'x-stack-known-error': known };
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

type Answer = readonly [status: number, body: unknown];

function answer(
  projects: Map<string, StandInProject>,
  client: { clientId: string; clientSecret: string },
  call: Call,
): Answer {
  const name = `${call.method} ${call.path.replace(/^\/integrations\/neon/, '~')}`;
  if (name === 'POST ~/projects/provision') {
    requireClient(client, call);
    const project: StandInProject = {
      id: randomUUID(),
      adminKey: key('sak'),
      isAdminKeyRevoked: false,
      ownerTeamId: null,
      displayName: String(call.body.display_name),
      keySets: [],
      users: new Map(),
      domains: new Set(),
      oauth: new Map(),
      webhooks: [],
    };
    for (const id of ['google', 'github']) project.oauth.set(id, { id, type: 'shared' });
    projects.set(project.id, project);
    return [200, { project_id: project.id, super_secret_admin_key: project.adminKey }];
  }
  if (call.path.endsWith('/projects/transfer')) {
    requireClient(client, call);
    const id = call.method === 'GET' ? call.query.get('project_id') : String(call.body.project_id);
    if (projects.get(id ?? '')?.ownerTeamId !== null)
      throw new Refusal(400, null, 'This project cannot be transferred.');
    if (call.method === 'GET') return [200, { message: 'Ready to transfer.' }];
    return [200, { confirmation_url: `http://dashboard.test/confirm?code=${key('x')}` }];
  }
  return answerAdmin(projects, client, call, name);
}

function answerAdmin(
  projects: Map<string, StandInProject>,
  client: { clientId: string; clientSecret: string },
  call: Call,
  name: string,
): Answer {
  const project = requireAdmin(projects, call);
  const last = decodeURIComponent(call.path.split('/').at(-1) ?? '');
  if (name === 'GET ~/projects/current') return [200, { id: project.id, owner_team_id: project.ownerTeamId }];
  if (name === 'DELETE /internal/projects/current') {
    projects.delete(project.id);
    return [200, { success: true }];
  }
  if (name === 'POST ~/webhooks') {
    requireClient(client, call);
    const secret = `whsec_${randomBytes(24).toString('base64')}`;
    project.webhooks.push({ url: String(call.body.url), secret });
    return [200, { secret }];
  }
  if (call.path.includes('/api-keys')) return answerKeys(project, call, last);
  if (call.path.startsWith('/users')) return answerUsers(project, call, last);
  if (call.path.includes('/domains')) return answerDomains(project, call, last);
  if (call.path.includes('/oauth-providers')) return answerOauth(project, call, last);
  throw new Refusal(404, null, `the stand-in knows no ${name}`);
}

function answerKeys(project: StandInProject, { method, body }: Call, last: string): Answer {
  if (method === 'POST') {
    const set = {
      id: randomUUID(),
      description: String(body.description),
      revokedAt: null,
      secretServerKey: key('ssk'),
    };
    project.keySets.push(set);
    const { id, description, secretServerKey } = set;
    return [200, { id, description, publishable_client_key: key('pck'), secret_server_key: secretServerKey }];
  }
  if (method === 'GET') {
    const items = project.keySets.map(({ id, description, revokedAt }) => ({
      id,
      description,
      ...(revokedAt === null ? {} : { manually_revoked_at_millis: revokedAt }),
    }));
    return [200, { items, is_paginated: false }];
  }
  const set = project.keySets.find(({ id }) => id === last);
  if (set === undefined) throw new Refusal(404, 'API_KEY_NOT_FOUND', 'API key not found.');
  set.revokedAt = Date.now();
  return [200, { id: set.id }];
}

function answerUsers(project: StandInProject, { method, path, query, body }: Call, last: string): Answer {
  if (method === 'POST') {
    const taken = [...project.users.values()].some((user) => user.primary_email === body.primary_email);
    if (taken) throw new Refusal(409, 'USER_EMAIL_ALREADY_EXISTS', 'A user with this email already exists.');
    return [201, addUser(project, body)];
  }
  if (path === '/users') {
    const all = [...project.users.values()];
    const from = Math.max(
      0,
      all.findIndex((user) => user.id === query.get('cursor')),
    );
    const limit = Number(query.get('limit') ?? all.length);
    const next = all[from + limit]?.id ?? null;
    return [200, { items: all.slice(from, from + limit), is_paginated: true, pagination: { next_cursor: next } }];
  }
  const user = project.users.get(last);
  if (user === undefined) throw new Refusal(404, 'USER_NOT_FOUND', 'User not found.');
  if (method === 'DELETE') project.users.delete(last);
  if (method === 'PATCH') Object.assign(user, body);
  return [200, method === 'DELETE' ? { success: true } : user];
}

function addUser(project: StandInProject, fields: Record<string, unknown>): Record<string, unknown> {
  const id = randomUUID();
  const now = Date.now();
  const user = { id, display_name: null, signed_up_at_millis: now, last_active_at_millis: now, ...fields };
  project.users.set(id, user);
  return user;
}

function answerDomains(project: StandInProject, { method, body }: Call, last: string): Answer {
  if (method === 'GET') {
    return [200, { items: [...project.domains].sort().map((domain) => ({ domain })), is_paginated: false }];
  }
  if (method === 'POST') {
    project.domains.add(String(body.domain));
    return [201, { domain: body.domain }];
  }
  project.domains.delete(last);
  return [200, { success: true }];
}

function answerOauth(project: StandInProject, { method, body }: Call, last: string): Answer {
  if (method === 'GET') return [200, { items: [...project.oauth.values()], is_paginated: false }];
  if (method === 'POST') {
    const id = String(body.id);
    if (project.oauth.has(id)) throw new Refusal(400, null, 'OAuth provider already exists');
    project.oauth.set(id, { type: 'shared', ...body });
    return [201, project.oauth.get(id)];
  }
  const provider = project.oauth.get(last);
  if (provider === undefined) throw new Refusal(404, null, 'OAuth provider not found');
  if (method === 'DELETE') {
    project.oauth.delete(last);
    return [200, { success: true }];
  }
  return [200, Object.assign(provider, body)];
}

function requireClient(client: { clientId: string; clientSecret: string }, { headers }: Call): void {
  const expected = `Basic ${Buffer.from(`${client.clientId}:${client.clientSecret}`).toString('base64')}`;
  if (headers.authorization === expected) return;
  throw new Refusal(
    400,
    'SCHEMA_ERROR',
    'Invalid client_id:client_secret values; use the correct values for the integration',
  );
}

function requireAdmin(projects: Map<string, StandInProject>, { headers }: Call): StandInProject {
  const project = projects.get(String(headers['x-stack-project-id']));
  if (project === undefined) throw new Refusal(400, 'CURRENT_PROJECT_NOT_FOUND', 'The current project was not found.');
  const isRight = headers['x-stack-super-secret-admin-key'] === project.adminKey && !project.isAdminKeyRevoked;
  if (!isRight) throw new Refusal(401, 'INVALID_SUPER_SECRET_ADMIN_KEY', 'The super secret admin key is not valid.');
  return project;
}
