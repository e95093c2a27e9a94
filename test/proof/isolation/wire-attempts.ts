/** With which names, passwords and tokens somebody may ask for the rows of the victim's project. */
import type { Program } from '../../helpers/program.ts';
import { ask } from '../../helpers/query.ts';

export interface Tenant {
  readonly mark: string;
  readonly endpointId: string;
  readonly host: string;
  readonly role: string;
  readonly password: string;
  readonly database: string;
  /** What the role's password was before it was reset. */
  readonly formerPassword: string;
  /** Of the same role on a branch of the same data, where it was reset. */
  readonly branchPassword: string;
}

export interface WireAttempt {
  readonly name: string;
  readonly role: string;
  readonly password: string;
  readonly host: string;
  readonly database: string;
  /** As the `options` of a connection string. */
  readonly options?: string;
  /** In the address of the request itself. */
  readonly address?: string;
  readonly token?: string;
}

/** A project with a row that only its roles may read, a role whose password was reset, and a branch. */
export async function makeTenant(program: Program, mark: string): Promise<Tenant> {
  const { body } = await program.api('POST', '/projects', { project: { name: mark } });
  const projectId: string = body.project.id;
  const uri = new URL(body.connection_uris[0].connection_uri);
  const role = decodeURIComponent(uri.username);
  const ofBranch = (branchId: string) => `/projects/${projectId}/branches/${branchId}/roles/${role}/reset_password`;
  await ask(uri.href, 'create table secrets (text text)');
  await ask(uri.href, `insert into secrets values ('${mark} row')`);
  const reset = await program.api('POST', ofBranch(body.branch.id));
  const branch = await program.api('POST', `/projects/${projectId}/branches`, { endpoints: [{ type: 'read_write' }] });
  const child = await program.api('POST', ofBranch(branch.body.branch.id));
  return {
    mark,
    endpointId: body.endpoints[0].id,
    // Without the port: an address of a WebSocket has its own.
    host: body.endpoints[0].host.replace(/:\d+$/, ''),
    role,
    password: reset.body.role.password,
    database: uri.pathname.slice(1),
    formerPassword: decodeURIComponent(uri.password),
    branchPassword: child.body.role.password,
  };
}

interface Credentials {
  readonly name: string;
  readonly role: string;
  readonly password: string;
  readonly token?: string;
}

/** Nobody among them may read the victim's rows. */
function credentialsOf(victim: Tenant, attacker: Tenant, apiKey: string): Credentials[] {
  const { role } = victim;
  const unsigned = [{ alg: 'none' }, { sub: role, role }, ''];
  const tokens = [
    unsigned.map((part) => (part === '' ? '' : encode(part))).join('.'),
    apiKey,
    'x.y.z',
    victim.password,
  ];
  const passwords: Readonly<Record<string, string>> = {
    'the password of the attacker': attacker.password,
    'the password before the reset': victim.formerPassword,
    'the password of a branch': victim.branchPassword,
    'an API key': apiKey,
    'its own name': role,
    'a verifier': 'SCRAM-SHA-256$4096:AAAA$AAAA:AAAA',
    'a pattern': '%',
    'no password': '',
  };
  const inside = ['postgres', 'catnap', 'cloud_admin', 'neon_superuser', 'pg_read_all_data', attacker.role];
  return [
    { name: 'the attacker', role: attacker.role, password: attacker.password },
    ...Object.entries(passwords).map(([name, password]) => ({ name: `the role with ${name}`, role, password })),
    ...inside.map((one) => ({ name: `${one} with a good password`, role: one, password: attacker.password })),
    ...tokens.map((token, at) => ({ name: `token ${at}`, role, password: '', token })),
  ];
}

const encode = (part: object | string) => Buffer.from(JSON.stringify(part)).toString('base64url');

type Naming = Pick<WireAttempt, 'host' | 'options' | 'address'> & { readonly name: string; readonly prefix?: string };

/** In each place that may name a compute: the victim's alone, and together with the attacker's in the others. */
function namings(victim: Tenant, attacker: Tenant): Naming[] {
  const [theirs, own] = [victim.endpointId, attacker.endpointId];
  const pooled = victim.host.replace(theirs, `${theirs}-pooler`);
  const nowhere = victim.host.replace(`${theirs}.`, '');
  return [
    { name: 'by its hostname', host: victim.host },
    { name: 'by its pooled hostname', host: pooled },
    { name: 'by options', host: nowhere, options: `endpoint=${theirs}` },
    { name: 'by the address', host: nowhere, address: theirs },
    { name: 'by the password', host: nowhere, prefix: `endpoint=${theirs};` },
    { name: 'by the password, the other way', host: nowhere, prefix: `endpoint=${theirs}$` },
    { name: 'by options, at the own hostname', host: attacker.host, options: `endpoint=${theirs}` },
    { name: 'by the address, at the own hostname', host: attacker.host, address: theirs },
    { name: 'by the password, at the own hostname', host: attacker.host, prefix: `endpoint=${theirs};` },
    { name: 'by its hostname, with own options', host: victim.host, options: `endpoint=${own}` },
    { name: 'by its hostname, with the own address', host: victim.host, address: own },
    { name: 'by two labels', host: `${theirs}.${attacker.host}` },
    { name: 'by the other two labels', host: `${own}.${victim.host}` },
    { name: 'not at all', host: attacker.host },
  ];
}

export function wireAttempts(victim: Tenant, attacker: Tenant, apiKey: string): WireAttempt[] {
  const databases = [victim.database, 'postgres', 'catnap'];
  return credentialsOf(victim, attacker, apiKey).flatMap((who) =>
    namings(victim, attacker).flatMap(({ name, prefix = '', ...where }) =>
      databases.map((database) => ({
        ...who,
        ...where,
        name: `${who.name}, ${name}, database ${database}`,
        password: `${prefix}${who.password}`,
        database,
      })),
    ),
  );
}
