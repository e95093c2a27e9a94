import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type HttpStub, type StubReply, startHttpStub } from '../../test/helpers/http-stub.ts';
import { catnapCommand } from '../../test/helpers/run-cli.ts';
import type {
  Check,
  CliParts,
  ManifestOptions,
  RenderedManifests,
  ServicePlan,
  StorageParts,
  UpOptions,
} from './kit/parts.ts';
import { runPsql } from './kit/run-psql.ts';

let home: string;
let stub: HttpStub;
let replies: Record<string, StubReply>;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'cn-cli-'));
  replies = {};
  stub = await startHttpStub(({ method, path }) => replies[`${method} ${path}`]);
});

afterEach(async () => {
  await stub.close();
  await rm(home, { recursive: true });
});

const notHere = async () => {
  throw new Error('not here');
};
const noStorage: StorageParts = { plan: notHere, create: notHere, status: notHere };

const catnap = (args: readonly string[], changes: Partial<CliParts> = {}) =>
  catnapCommand(args, { home, folder: home, url: stub.url, ...changes });

describe('outbox', () => {
  const mail = {
    id: 7,
    to: 'ada@example.com',
    subject: 'Reset your password',
    status: 'stored',
    created_at: '2026-01-01T00:00:00.000Z',
    text: 'Hello \u001b[2J,\n\nhttp://localhost/reset?code=abc',
  };

  test('lists mails, and shows one with its link and without its tricks', async () => {
    replies['GET /api/v2/outbox?limit=20'] = { body: { mails: [mail] } };
    replies['GET /api/v2/outbox?limit=1&before=8'] = { body: { mails: [mail] } };
    replies['GET /api/v2/outbox?limit=1&before=10'] = { body: { mails: [mail] } };
    expect((await catnap(['outbox'])).out).toMatch(/^ID .*\n7 .*ada@example.com .*stored\n$/);
    const shown = await catnap(['outbox', '7']);
    expect(shown.out).toContain('Hello ?[2J,\n\nhttp://localhost/reset?code=abc\n');
    expect(JSON.parse((await catnap(['outbox', '7', '--json'])).out).text).toBe(mail.text);
    expect(await catnap(['outbox', '9'])).toMatchObject({ code: 1, err: 'catnap: there is no mail 9 in the outbox\n' });
    expect((await catnap(['outbox', 'x'])).code).toBe(2);
  });
});

describe('storage', () => {
  const plan = { image: '/h/storage.img', mountPoint: '/h/storage', bytes: 2 ** 30, movedBytes: 0, projects: 0 };
  const status = {
    method: 'reflink' as const,
    path: '/h/storage',
    isAway: false,
    bytesUsed: 2 ** 20,
    bytesFree: 2 ** 30,
    image: { file: '/h/storage.img', bytes: 2 ** 30, bytesOnDisk: 3 * 2 ** 20 },
    branches: [{ project: 'p', branch: 'br-a', bytes: 2 ** 20, shared: 2 ** 19, extents: 20_000 }],
    branchBytes: 2 ** 21,
    branchBytesOnDisk: 2 ** 20,
    historyBytes: 2 ** 22,
    historyBytesOnDisk: 3 * 2 ** 20,
    purgeBytes: 5 * 2 ** 20,
  };

  test('says what it will do, and does it only when told', async () => {
    const made: number[] = [];
    const storage = {
      ...noStorage,
      plan: async (bytes: number) => ({ ...plan, bytes, movedBytes: 2 ** 20, projects: 3 }),
      create: async (bytes: number, say: (line: string) => void) => {
        made.push(bytes);
        say('made it');
      },
    };
    const asked = await catnap(['storage', 'create', '--size', '2G'], { storage });
    expect(asked).toMatchObject({ code: 1, err: 'catnap: nobody is here to be asked: add --yes\n' });
    expect(asked.out).toMatch(/XFS filesystem of 2 GiB[\s\S]*Data of 3 projects \(1 MiB\) is copied/);
    expect(made).toEqual([]);
    const told = await catnap(['storage', 'create', '--size', '512m', '--yes'], { storage });
    expect(told).toMatchObject({ code: 0, out: expect.stringContaining('made it\n') });
    expect(made).toEqual([512 * 2 ** 20]);
  });

  test('refuses a size that is none, and says what is in the way', async () => {
    expect(await catnap(['storage', 'create', '--size', 'big'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('as in 50G'),
    });
    const storage = { ...noStorage, plan: () => Promise.reject(new Error('only root can mount filesystems')) };
    const refused = await catnap(['storage', 'create', '--size', '1G', '--yes'], { storage });
    expect(refused).toMatchObject({ code: 1, err: 'catnap: only root can mount filesystems\n' });
  });

  test('shows method, space and extents, for people and for programs', async () => {
    const storage = { ...noStorage, status: async () => status };
    const { out } = await catnap(['storage', 'status'], { storage });
    expect(out).toMatch(/method: +reflink/);
    expect(out).toMatch(/image: +\/h\/storage.img, up to 1 GiB, 3 MiB on the disk/);
    expect(out).toMatch(/saved by sharing: +1 MiB/);
    expect(out).toMatch(/history: +3 MiB beyond what branches take/);
    expect(out).toMatch(/freed by catnap purge: +at least 5 MiB/);
    expect(out).toMatch(/p +br-a +1 MiB +512 KiB +20000/);
    expect(out).toMatch(/Slow to branch.*br-a/);
    const json = await catnap(['storage', 'status', '--json'], { storage });
    expect(JSON.parse(json.out)).toMatchObject({ method: 'reflink', branches: [{ branch: 'br-a' }] });
  });
});

describe('branches', () => {
  test('that do not differ are said to be the same, and the point of a base is passed on', async () => {
    const branch = (id: string, name: string) => ({ body: { branches: [{ id, name, default: false }] } });
    replies['GET /api/v2/projects/p'] = { body: { project: { id: 'p' } } };
    replies['GET /api/v2/projects/p/branches?search=dev'] = branch('br-1', 'dev');
    replies['GET /api/v2/projects/p/branches?search=main'] = branch('br-2', 'main');
    const compare = 'GET /api/v2/projects/p/branches/br-1/compare_schema?db_name=d&base_branch_id=br-2';
    replies[`${compare}&base_lsn=0%2F1`] = { body: { diff: '' } };
    const same = await catnap(['branches', 'schema-diff', 'dev', 'main@0/1', '--project', 'p', '--database', 'd']);
    expect(same).toEqual({ code: 0, out: 'The schemas are the same.\n', err: '' });
  });
});

describe('service', () => {
  const plan = {
    unitFile: '/etc/x.service',
    settingsFile: '/etc/x.env',
    text: '[Unit]\n',
    socket: null,
    next: ['systemctl daemon-reload'],
    notes: ['It is old.'],
  };

  test('prints the unit, or writes it when told and says what comes next', async () => {
    const written: string[] = [];
    const asked: (string | undefined)[] = [];
    const service = {
      plan: async (account: string | undefined) => {
        asked.push(account);
        return plan;
      },
      install: async ({ unitFile }: ServicePlan) => void written.push(unitFile),
    };
    expect((await catnap(['service', 'install', '--print', '--user', 'cat'], { service })).out).toBe('[Unit]\n');
    const unsure = await catnap(['service', 'install'], { service });
    expect(unsure).toMatchObject({ code: 1, err: expect.stringContaining('--yes') });
    expect(written).toEqual([]);
    const { out } = await catnap(['service', 'install', '--yes'], { service });
    expect(out).toMatch(/unit: +\/etc\/x\.service\n.*\nIt is old\.\nNext:\n {2}systemctl daemon-reload\n$/);
    expect([written, asked]).toEqual([['/etc/x.service'], ['cat', undefined, undefined]]);
  });

  test('shows the unit of the ports too, when systemd is to keep them', async () => {
    const socket = { file: '/etc/x.socket', text: '[Socket]\n' };
    const service = {
      plan: async (_account: string | undefined, keepsPorts: boolean) => (keepsPorts ? { ...plan, socket } : plan),
      install: async () => {},
    };
    const words = ['service', 'install', '--sockets'];
    expect((await catnap([...words, '--print'], { service })).out).toBe('[Unit]\n\n[Socket]\n');
    expect((await catnap([...words, '--yes'], { service })).out).toMatch(/sockets: +\/etc\/x\.socket\n/);
  });
});

describe('upgrade', () => {
  const checks: Check[] = [
    { name: 'system database', status: 'fail', detail: 'is newer', advice: 'start the newer one' },
    { name: 'Node', status: 'ok', detail: '20.19.0' },
  ];
  const undo = notHere;

  test('check prints what was found, and fails where the program cannot take over', async () => {
    const bad = await catnap(['upgrade', 'check'], { upgrade: { check: async () => checks, undo } });
    expect(bad.code).toBe(1);
    expect(bad.out).toMatch(/fail +system database +is newer\n/);
    expect(bad.out).toContain('fail: system database: start the newer one\n\nThis program cannot take over yet: 1 of');
    const good = await catnap(['upgrade', 'check'], { upgrade: { check: async () => checks.slice(1), undo } });
    expect(good).toMatchObject({ code: 0, out: expect.stringContaining('This program can take over.') });
  });

  test('undo asks first, says what was taken back, and passes refusals on', async () => {
    const asked: (string | undefined)[] = [];
    const upgrade = {
      check: notHere,
      undo: async (to: string | undefined) => {
        asked.push(to);
        return { release: 'Catnap 0.1.0', migrations: ['0025-b.sql', '0024-a.sql'] };
      },
    };
    const unsure = await catnap(['upgrade', 'undo'], { upgrade });
    expect(unsure).toMatchObject({ code: 1, err: expect.stringContaining('--yes') });
    const { out } = await catnap(['upgrade', 'undo', '--yes', '--to', '0.1.0'], { upgrade });
    expect(out).toMatch(/program: +Catnap 0\.1\.0\nUndone: 0025-b\.sql, 0024-a\.sql\nInstall Catnap 0\.1\.0 again/);
    expect(asked).toEqual(['0.1.0']);
    const refused = await catnap(['upgrade', 'undo', '--yes'], { upgrade: { check: notHere, undo } });
    expect(refused).toMatchObject({ code: 1, err: 'catnap: not here\n' });
  });
});

describe('the program', () => {
  test('prints its version and its help', async () => {
    expect(await catnap(['--version'])).toEqual({ code: 0, out: '1.2.3\n', err: '' });
    const help = await catnap(['help']);
    expect(help.code).toBe(0);
    for (const command of ['up', 'status', 'keys', 'psql', 'doctor']) expect(help.out).toMatch(`\n  ${command} `);
  });

  test('refuses what it does not know, with exit code 2', async () => {
    expect(await catnap(['nonsense'])).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^catnap: unknown command/),
    });
    const format = await catnap(['status', '--output', 'xml']);
    expect(format).toMatchObject({ code: 2, err: expect.stringMatching(/Allowed choices are table, json/) });
  });

  test('does not hide failures that are nobody’s fault', async () => {
    const up = () => Promise.reject(new TypeError('a defect'));
    await expect(catnap(['up'], { up })).rejects.toThrow('a defect');
  });
});

describe('up', () => {
  test('starts all processes unless told which, and gives the exit code on', async () => {
    const asked: UpOptions[] = [];
    const up = async (options: UpOptions) => asked.push(options) + 2;
    expect((await catnap(['up'], { up })).code).toBe(3);
    await catnap(['up', '--processes', 'proxy, api', '--stop-computes'], { up });
    // The option's original name.
    await catnap(['up', '--roles', 'worker'], { up });
    expect(asked).toEqual([
      { processes: ['api', 'worker', 'proxy'], stopComputes: false },
      { processes: ['api', 'proxy'], stopComputes: true },
      { processes: ['worker'], stopComputes: false },
    ]);
  });

  test.each(['--processes', '--roles'])('names the processes there are to %s', async (option) => {
    const refused = await catnap(['up', option, 'api,console']);
    expect(refused).toMatchObject({
      code: 2,
      err: expect.stringMatching(/"console" is not one of api, worker, proxy/),
    });
  });
});

describe('kubernetes manifests', () => {
  const needed = ['--image', 'catnap:1', '--host', 'a.test', '--domain', 'b.test', '--postgres-images', '17=pg:17.6'];
  const printing = (options: readonly string[], wrong: RenderedManifests['wrong'] = null) => {
    const asked: ManifestOptions[] = [];
    const kubernetesManifests = async (given: ManifestOptions) => {
      asked.push(given);
      return { wrong, text: 'kind: Namespace\n' };
    };
    return catnap(['kubernetes', 'manifests', ...options], { kubernetesManifests }).then((ran) => ({ ...ran, asked }));
  };

  test('prints them for what is said, and leaves the rest to its usual values', async () => {
    const { code, out, asked } = await printing([...needed, '--apis', '3']);
    expect([code, out]).toEqual([0, 'kind: Namespace\n']);
    expect(asked).toEqual([
      { image: 'catnap:1', host: 'a.test', domain: 'b.test', postgresImages: { 17: 'pg:17.6' }, apis: 3 },
    ]);
  });

  test('names the option that is wrong', async () => {
    const wrong = { name: 'computesNamespace', form: 'another one' };
    expect(await printing(needed, wrong)).toMatchObject({
      code: 2,
      out: '',
      err: 'catnap: --computes-namespace must be another one\n',
    });
    const images = await printing([...needed.slice(0, -1), 'pg:17']);
    expect(images).toMatchObject({ code: 2, err: expect.stringContaining('It must be major=image') });
  });
});

describe('status', () => {
  const counts = { projects: 3, endpoints: { active: 1, idle: 2, init: 0 } };

  test('tells what is there', async () => {
    const body = { name: 'catnap', version: '9', database_port: 7432, limits_enforced: false, counts };
    replies['GET /status.json'] = { body };
    replies['GET /readyz'] = { body: { status: 'ok' } };
    const { code, out, err } = await catnap(['status']);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/state: +up\n/);
    expect(out).toMatch(/sizes enforced: +false\n/);
    expect(out).toMatch(/computes awake: +1\ncomputes napping: +2\n/);
    expect(JSON.parse((await catnap(['status', '--json'])).out)).toMatchObject({ state: 'up', computes_napping: 2 });
    expect(stub.requests.every((request) => request.authorization === undefined)).toBe(true);
  });

  test('asks for the counts with its key where others do not see them', async () => {
    const brief = { name: 'catnap', version: '9' };
    replies['GET /readyz'] = { body: { status: 'ok' } };
    const open = await startHttpStub(({ method, path, authorization }) =>
      path === '/status.json' && authorization === 'Bearer configured-key'
        ? { body: { ...brief, counts } }
        : path === '/status.json'
          ? { body: brief }
          : replies[`${method} ${path}`],
    );
    const { code, out, err } = await catnap(['status'], { url: open.url });
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/projects: +3\ncomputes awake: +1\n/);
    expect((await catnap(['status', '--api-key', 'wrong'], { url: open.url })).out).toContain(
      'Counts are shown to those who have an API key.',
    );
    await open.close();
  });

  test('says when it is not ready, and why', async () => {
    replies['GET /status.json'] = { body: { name: 'catnap', version: '9' } };
    replies['GET /readyz'] = { status: 503, body: { message: 'the system database does not answer' } };
    const { code, out, err } = await catnap(['status']);
    expect(code).toBe(1);
    expect(out).toMatch(/state: +not ready/);
    expect(err).toBe('catnap: the system database does not answer (HTTP 503); see the log of Catnap\n');
  });

  test('says when it is down, and what to do', async () => {
    await stub.close();
    const { code, out, err } = await catnap(['--json', 'status']);
    expect({ code, state: JSON.parse(out).state }).toEqual({ code: 1, state: 'down' });
    expect(err).toContain('start it with `catnap up`');
    stub = await startHttpStub(() => undefined);
  });

  test('does not take somebody else for Catnap', async () => {
    replies['GET /status.json'] = { body: { name: 'other' } };
    expect(await catnap(['status'])).toMatchObject({
      code: 1,
      err: expect.stringMatching(/something other than Catnap answers/),
    });
  });
});

describe('keys', () => {
  const made = { id: 5, name: 'ci', scope: 'full', created_at: '2026-01-02T03:04:05Z', last_used_at: null };

  test('lists personal keys and those of an organization', async () => {
    replies['GET /api/v2/api_keys'] = { body: [made] };
    replies['GET /api/v2/organizations/org-1/api_keys'] = { body: [] };
    expect((await catnap(['keys', 'list'])).out).toBe(
      [
        'ID  NAME  SCOPE  EXPIRES AT  CREATED AT            LAST USED AT',
        '5   ci    full   -           2026-01-02T03:04:05Z  -',
        '',
      ].join('\n'),
    );
    expect((await catnap(['keys', 'list', '--org', 'org-1'])).out).toBe('There are no keys.\n');
    expect(stub.requests[0]?.authorization).toBe('Bearer configured-key');
  });

  test('creates a key, for one project in the project’s organization', async () => {
    replies['POST /api/v2/api_keys'] = { body: { ...made, key: 'secret-1' } };
    replies['GET /api/v2/projects/p-1'] = { body: { project: { id: 'p-1', name: 'p', org_id: 'org-1' } } };
    replies['POST /api/v2/organizations/org-1/api_keys'] = { body: { ...made, key: 'secret-2', project_id: 'p-1' } };
    expect((await catnap(['keys', 'create', 'ci'])).out).toMatch(/key: +secret-1\nThe key is not shown again/);
    const scoped = await catnap(['keys', 'create', 'ci', '--project', 'p-1', '--json']);
    expect(JSON.parse(scoped.out)).toMatchObject({ key: 'secret-2', project_id: 'p-1' });
    expect(stub.requests.at(-1)?.body).toEqual({ key_name: 'ci', project_id: 'p-1' });
    await catnap(['keys', 'create', 'ci', '--scope', 'branches', '--expires-at', '2027-01-01T00:00:00Z']);
    expect(stub.requests.at(-1)?.body).toEqual({
      key_name: 'ci',
      scope: 'branches',
      expires_at: '2027-01-01T00:00:00Z',
    });
    expect(await catnap(['keys', 'create', 'ci', '--scope', 'root'])).toMatchObject({
      code: 2,
      err: expect.stringMatching(/Allowed choices are full, read_only, branches, sql/),
    });
  });

  test('lists and revokes those of one project, by its name', async () => {
    const keys = '/api/v2/organizations/org-1/api_keys';
    const project = { id: 'p-1', name: 'shop', org_id: 'org-1' };
    replies['GET /api/v2/projects?limit=100'] = { body: { projects: [project, { id: 'p-2', name: 'other' }] } };
    replies['GET /api/v2/projects/p-1'] = { body: { project } };
    const others = [
      { ...made, id: 6, project_id: 'p-2' },
      { ...made, id: 7 },
    ];
    replies[`GET ${keys}`] = { body: [{ ...made, project_id: 'p-1' }, ...others] };
    replies[`DELETE ${keys}/5`] = { body: { ...made, revoked: true } };
    const { out } = await catnap(['keys', 'list', '--project', 'shop']);
    expect(out).toMatch(/^ID +NAME +PROJECT .*\n5 +ci +p-1 .*\n$/);
    expect(await catnap(['keys', 'revoke', '6', '--project', 'shop'])).toEqual({
      code: 1,
      out: '',
      err: 'catnap: project p-1 has no key 6: see `catnap keys list --project p-1`\n',
    });
    expect(stub.requests.filter(({ method }) => method === 'DELETE')).toEqual([]);
    expect((await catnap(['keys', 'revoke', '5', '--project', 'shop'])).out).toBe('revoked:  5\nname:     ci\n');
    expect(await catnap(['keys', 'list', '--project', 'none'])).toMatchObject({
      code: 1,
      err: 'catnap: there is no project none\n',
    });
  });

  test('revokes by number', async () => {
    replies['DELETE /api/v2/api_keys/5'] = { body: { ...made, revoked: true } };
    expect((await catnap(['keys', 'revoke', '5'])).out).toBe('revoked:  5\nname:     ci\n');
    expect((await catnap(['keys', 'revoke', '6'])).err).toBe('catnap: not found (HTTP 404)\n');
    expect(await catnap(['keys', 'revoke', 'ci'])).toMatchObject({
      code: 2,
      err: expect.stringMatching(/must be a number/),
    });
  });

  test('says how to come back after the last personal key', async () => {
    replies['DELETE /api/v2/api_keys/5'] = { body: { ...made, revoked: true, warning: 'run something' } };
    expect((await catnap(['keys', 'revoke', '5'])).out).toBe('revoked:  5\nname:     ci\nrun something\n');
  });

  test('recovers a key on the machine, without the API', async () => {
    const isNew = async () => ({ key: 'recovered', isNew: true });
    expect((await catnap(['keys', 'recover'], { recoverKey: isNew })).out).toMatch(/key: +recovered\nIt is new/);
    const works = async () => ({ key: 'kept', isNew: false });
    expect((await catnap(['keys', 'recover'], { recoverKey: works })).out).toMatch(/key: +kept\nIt still works/);
    expect(stub.requests).toEqual([]);
  });

  test('shows the first key, and uses it when no other is given', async () => {
    const without = { apiKey: undefined };
    expect(await catnap(['keys', 'show'], without)).toMatchObject({
      code: 1,
      err: expect.stringMatching(/there is no key in .*api-key/),
    });
    await writeFile(join(home, 'api-key'), 'key-of-the-file\n');
    expect((await catnap(['keys', 'show'], without)).out).toMatch(/key: +key-of-the-file\n/);
    expect((await catnap(['keys', 'show', '--raw'], without)).out).toBe('key-of-the-file\n');
    replies['GET /api/v2/api_keys'] = { body: [] };
    await catnap(['keys', 'list'], without);
    await catnap(['keys', 'list', '--api-key', 'given'], without);
    expect(stub.requests.map((request) => request.authorization)).toEqual(['Bearer key-of-the-file', 'Bearer given']);
  });
});

describe('doctor', () => {
  const checks: Check[] = [
    { name: 'Node', status: 'ok', detail: '20' },
    { name: 'psql', status: 'warn', detail: 'missing', advice: 'install it' },
  ];

  test('prints findings and advice, and fails only when something fails', async () => {
    const fine = await catnap(['doctor'], { doctor: async () => checks });
    expect(fine).toMatchObject({
      code: 0,
      out: expect.stringMatching(/warn: psql: install it\n\nCatnap can run here\.\n$/),
    });
    const worse: Check = { name: 'uids', status: 'fail', detail: 'none', advice: 'get some' };
    const bad = await catnap(['doctor'], { doctor: async () => [...checks, worse] });
    expect(bad).toMatchObject({
      code: 1,
      out: expect.stringMatching(/fail: uids: get some\n\nCatnap cannot run here yet/),
    });
    const json = await catnap(['doctor', '--output', 'json'], { doctor: async () => checks });
    expect(JSON.parse(json.out)).toEqual(checks);
  });
});

describe('psql', () => {
  const uri = 'postgresql://app_owner:p%3Aw%5C@localhost:7432/app?options=endpoint%3Dep-1';

  const endpoint = { id: 'ep-1', project_id: 'p-2', branch_id: 'br-1', current_state: 'idle' };

  beforeEach(() => {
    const list = [{ id: 'p-1' }, { id: 'p-2' }];
    replies['GET /api/v2/projects?limit=100'] = { body: { projects: list } };
    replies['GET /api/v2/projects/p-2'] = { body: { project: { id: 'p-2' } } };
    replies['GET /api/v2/projects/p-2/endpoints'] = { body: { endpoints: [endpoint] } };
    replies['GET /api/v2/projects/p-2/endpoints/ep-1'] = { body: { endpoint } };
    const branch = 'GET /api/v2/projects/p-2/branches/br-1';
    replies[`${branch}/databases`] = {
      body: {
        databases: [
          { name: 'app', owner_name: 'app_owner' },
          { name: 'two', owner_name: 'other' },
        ],
      },
    };
    replies[`${branch}/roles`] = { body: { roles: [{ name: 'app_owner' }, { name: 'other' }] } };
    const from = 'GET /api/v2/projects/p-2/connection_uri?branch_id=br-1&endpoint_id=ep-1';
    replies[`${from}&database_name=app&role_name=app_owner`] = { body: { uri } };
    replies[`${from}&database_name=two&role_name=app_owner&pooled=true`] = { body: { uri: 'postgresql://pooled' } };
  });
  afterEach(() => vi.unstubAllEnvs());

  test('finds the endpoint in any project and asks for the owner’s connection', async () => {
    const { code, out } = await catnap(['psql', 'ep-1', '--json']);
    const place = { endpoint_id: 'ep-1', project_id: 'p-2', branch_id: 'br-1' };
    expect({ code, ...JSON.parse(out) }).toEqual({ code: 0, ...place, uri });
    expect((await catnap(['psql', 'ep-1', '--print'])).out).toBe(`${uri}\n`);
    const options = ['--project', 'p-2', '--database', 'two', '--role', 'app_owner', '--pooled', '--print'];
    expect((await catnap(['psql', 'ep-1', ...options])).out).toBe('postgresql://pooled\n');
  });

  test('says what there is instead', async () => {
    expect((await catnap(['psql', 'ep-9'])).err).toBe(
      'catnap: there is no compute ep-9 in the 2 projects that the key reaches\n',
    );
    expect((await catnap(['psql', 'ep-1', '--database', 'x'])).err).toBe(
      'catnap: there is no database x; there is: app, two\n',
    );
    expect((await catnap(['psql', 'ep-1', '--role', 'x'])).err).toMatch(
      'there is no role x; there is: app_owner, other',
    );
  });

  test('hands psql the rest of the line, and the password in a file', async () => {
    const program = join(home, 'psql');
    const seen = join(home, 'seen');
    await writeFile(
      program,
      `#!/bin/sh\nprintf '%s\\n' "$@" > ${seen}\n${catPasswordFile} > ${seen}.password\nexit 7\n`,
    );
    await chmod(program, 0o755);
    expect(await runPsql(uri, ['-c', 'select 1'], { program, stdio: 'ignore' })).toBe(7);
    const [target = '', ...rest] = (await readFile(seen, 'utf8')).trimEnd().split('\n');
    expect(target).toMatch(/^postgresql:\/\/app_owner@localhost:7432\/app\?options=endpoint%3Dep-1&passfile=/);
    expect(target).not.toContain('p%3Aw');
    expect(rest).toEqual(['-c', 'select 1']);
    expect(await readFile(`${seen}.password`, 'utf8')).toBe('*:*:*:*:p\\:w\\\\\n');
    const passwordFile = new URL(target).searchParams.get('passfile') ?? '';
    expect(passwordFile).toContain('catnap-psql-');
    expect(existsSync(dirname(passwordFile))).toBe(false);
  });

  test('takes what stands behind -- as it is, and no branch or option of its own from there', async () => {
    const seen = join(home, 'seen');
    await writeFile(join(home, 'psql'), `#!/bin/sh\nprintf '%s\\n' "$@" > ${seen}\n`);
    await chmod(join(home, 'psql'), 0o755);
    vi.stubEnv('PATH', `${home}${delimiter}${process.env.PATH}`);
    const branch = { body: { branches: [{ id: 'br-1', name: 'main', default: true }] } };
    replies['GET /api/v2/projects/p-2/branches'] = branch;
    replies['GET /api/v2/projects/p-2/branches?search=main'] = branch;
    replies['GET /api/v2/projects/p-2/endpoints'] = { body: { endpoints: [{ ...endpoint, type: 'read_write' }] } };
    const commands = [
      'psql ep-1',
      'psql main --project p-2',
      'psql --project p-2 --branch main',
      'psql --project p-2',
      'cs main --psql --project p-2',
      'cs --psql --project p-2',
    ];
    for (const command of commands) {
      for (const words of [
        ['-c', 'select 1'],
        ['--json', '--role', 'x', '--help'],
        ['a', '--', 'ep-9'],
      ]) {
        expect(await catnap([...command.split(' '), '--', ...words])).toEqual({ code: 0, out: '', err: '' });
        const [, ...handedOver] = (await readFile(seen, 'utf8')).trimEnd().split('\n');
        expect(handedOver, command).toEqual(words);
      }
    }
    for (const command of ['psql ep-1 app', 'cs ep-1 app --psql']) {
      const refused = await catnap([...command.split(' '), '--', '-c', 'select 1']);
      expect(refused).toMatchObject({ code: 2, err: expect.stringContaining('(app): write -- before those for psql') });
    }
  });

  test('keeps a password in the environment from psql, which would take it before the file', async () => {
    const seen = join(home, 'seen');
    await writeFile(join(home, 'psql'), `#!/bin/sh\nprintf '%s' "$PGAPPNAME $PGPASSWORD" > ${seen}\n`);
    await chmod(join(home, 'psql'), 0o755);
    vi.stubEnv('PATH', `${home}${delimiter}${process.env.PATH}`);
    vi.stubEnv('PGPASSWORD', 'of another server');
    vi.stubEnv('PGAPPNAME', 'mine');
    expect((await catnap(['psql', 'ep-1'])).code).toBe(0);
    expect(await readFile(seen, 'utf8')).toBe('mine ');
  });

  test('says what to install when there is no psql', async () => {
    const failure = runPsql(uri, [], { program: join(home, 'none') });
    await expect(failure).rejects.toThrow(`psql is not installed; install it`);
    await expect(failure).rejects.toThrow(uri);
  });
});

/** The file's name is the last parameter of the first argument, URL-encoded. */
const catPasswordFile = `cat "$(printf '%s' "$1" | sed 's/.*passfile=//; s/%2F/\\//g')"`;
