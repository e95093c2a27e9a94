/**
 * Addresses that Catnap must not reach on behalf of a tenant, in every spelling: as key sets and as webhooks, when they
 * are stored and when they are used. Whoever listens there hears nothing.
 */
import dns from 'node:dns';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import { hostname } from 'node:os';
import type { OutboundPolicy } from '../../../src/lib/outbound.ts';
import { sendOutbound } from '../../../src/lib/outbound-request.ts';
import { basic, makeAuthProvider } from '../../helpers/auth-provider.ts';
import { makeApi } from '../../helpers/contract.ts';
import type { PartReport } from './report.ts';

/** Spellings of this machine, of private networks, and of what clouds tell their machines. */
const written = `
  localhost LOCALHOST localhost. x.localhost x.localhost. loc%61lhost %6c%6fcalhost 127.0.0.1 127.1 127.0.1
  127.255.255.254 127.0.0.1. 2130706433 0x7f000001 017700000001 0x7f.0.0.1 0177.0.0.1 0x7f.1 ①②⑦.0.0.1
  127。0。0。1 0 0.0.0.0 0x0 10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1 100.64.0.1 198.18.0.1
  169.254.169.254 0xa9fea9fe 2852039166 169.254.0.1 224.0.0.1 255.255.255.255 192.0.0.1 [::1] [::]
  [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:0:127.0.0.1] [::127.0.0.1] [64:ff9b::7f00:1]
  [64:ff9b:1::7f00:1] [2002:7f00:1::] [fe80::1] [fec0::1] [fd00::1] [fc00::1] [fd00:ec2::254] [ff02::1]
  [2001::1] [100::1]`
  .trim()
  .split(/\s+/);
/** Names that look like any other, and what they resolve to. */
const resolved: Readonly<Record<string, readonly string[]>> = {
  [hostname()]: ['127.0.0.1'],
  'to-loopback.example': ['127.0.0.1'],
  'to-loopback-6.example': ['::1'],
  'to-mapped.example': ['::ffff:127.0.0.1'],
  'to-metadata.example': ['169.254.169.254'],
  'to-private.example': ['10.0.0.1'],
  'to-link-local.example': ['fe80::1%lo'],
  'to-both.example': ['203.0.113.1', '127.0.0.1'],
  'to-both-6.example': ['2001:db8::1', 'fd00::1'],
  'to-nothing.example': [],
};
const decorated = (origin: string) => [origin, `${origin}/a?b`, `${origin}/%2e%2e/`];
const spoiled = (host: string) => [
  `https://user@${host}/`,
  `https://public.example@${host}/`,
  `https://${host}/#public.example`,
  `ftp://${host}/`,
  `file://${host}/etc/passwd`,
  `https:${host}`,
  `gopher://${host}/`,
];

const strict: OutboundPolicy = { allowPrivate: false, ownOrigin: 'https://catnap.example', allowPlain: true };

export async function trySsrf(): Promise<PartReport> {
  const heard: string[] = [];
  const server = await listen(heard);
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const leaks: string[] = [];
  const changes: string[] = [];
  const urls = [...written, ...Object.keys(resolved)].flatMap((host) => [
    ...decorated(`http://${host}:${port}`),
    ...decorated(`https://${host}:${port}`),
    `https://${host}/`,
    ...spoiled(`${host}:${port}`),
  ]);
  const names = new Set(Object.keys(resolved));
  const isName = (url: string) => URL.canParse(url) && names.has(new URL(url).hostname);
  const undo = resolveByTable();
  const stored = await makeStores();
  let attempts = 0;
  try {
    // Without this nothing would show that a request arrives where it may.
    const allowed = await sendOutbound(`http://127.0.0.1:${port}/`, { ...strict, allowPrivate: true }, request());
    allowed.destroy();
    if (heard.splice(0).length !== 1) changes.push('an allowed request has not arrived');
    for (const url of urls) {
      for (const [what, store] of Object.entries(stored.store)) {
        attempts += 1;
        const status = await store(url);
        // What a name resolves to is not known until it is used.
        if (status < 400 && !isName(url)) changes.push(`${what} ${url} was stored (${status})`);
        if (status >= 500) changes.push(`${what} ${url} -> ${status}`);
      }
      for (const body of [undefined, '{}']) {
        attempts += 1;
        const reply = await sendOutbound(url, strict, request(body)).catch((error: unknown) => error);
        if (!(reply instanceof Error)) changes.push(`${url} was asked`);
      }
    }
  } finally {
    undo();
    await stored.close();
    server.close();
  }
  for (const line of heard) leaks.push(`somebody was reached: ${line}`);
  const table = {
    title: 'Addresses that must not be reached',
    columns: ['', 'count'],
    rows: [
      ['hosts', written.length + names.size],
      ['URLs', urls.length],
      ['requests that arrived', heard.length],
    ],
  };
  return { part: 'ssrf', attempts, leaks, changes, tables: [table] };
}

const request = (body?: string) => ({ headers: {}, timeoutMs: 2_000, ...(body === undefined ? {} : { body }) });

async function listen(heard: string[]): Promise<Server> {
  const server = createServer((asked, reply) => {
    heard.push(`${asked.method} ${asked.url}`);
    reply.end('{"keys":[]}');
  });
  server.on('connection', (socket) => socket.on('error', () => undefined));
  server.on('clientError', (error, socket) => {
    heard.push(`a connection: ${error.message}`);
    socket.destroy();
  });
  server.listen(0, '0.0.0.0');
  await once(server, 'listening');
  return server;
}

/** The public addresses among them are of nobody, and are not asked either: one that is private is enough. */
function resolveByTable(): () => void {
  const before = dns.lookup;
  const byTable = (
    name: string,
    _options: unknown,
    callback: (error: Error | null, addresses: { address: string; family: number }[]) => void,
  ) => {
    const addresses = (resolved[name] ?? []).map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    callback(null, addresses);
  };
  Object.assign(dns, { lookup: byTable });
  syncBuiltinESMExports();
  return () => {
    Object.assign(dns, { lookup: before });
    syncBuiltinESMExports();
  };
}

/** Where a tenant can leave a URL. */
async function makeStores() {
  const [api, provider] = await Promise.all([
    makeApi({ privateKeySets: false }),
    makeAuthProvider({}, { privateKeySets: false }),
  ]);
  const made = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
  const webhooks = `/api/v2/projects/${made.project.id}/webhooks`;
  const innocent = { url: 'https://public.example/', events: ['operation.ended'] };
  const toChange = (await api.call('POST', webhooks, { body: { webhook: innocent } })).json().webhook;
  const { admin } = await provider.provision();
  return {
    store: {
      'a key set': async (url: string) => {
        const body = { jwks_url: url, provider_name: 'x', skip_role_creation: true };
        const reply = await api.call('POST', `/api/v2/projects/${made.project.id}/jwks`, { body });
        if (reply.statusCode < 300) await api.core.database.sql`delete from project_key_sets`;
        return reply.statusCode;
      },
      'a webhook': async (url: string) => {
        const reply = await api.call('POST', webhooks, { body: { webhook: { ...innocent, url } } });
        if (reply.statusCode < 300) await api.core.database.sql`delete from webhooks where id <> ${toChange.id}`;
        return reply.statusCode;
      },
      'a changed webhook': async (url: string) => {
        const reply = await api.call('PATCH', `${webhooks}/${toChange.id}`, { body: { webhook: { url } } });
        return reply.statusCode;
      },
      'a webhook of an auth provider': async (url: string) => {
        const reply = await provider.call('POST', '/integrations/neon/webhooks', { ...admin, ...basic }, { url });
        if (reply.status < 300) await provider.core.database.sql`delete from stack_webhook_endpoints`;
        return reply.status;
      },
    },
    close: async () => {
      await api.close();
      await provider.close();
    },
  };
}
