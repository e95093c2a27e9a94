/** The published command line, unmodified: what a person does with it on the first day. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasNeonctl, runNeonctl } from '../helpers/foreign.ts';
import { Program } from '../helpers/program.ts';

let program: Program;
let folder: string;
let projectId: string;

async function neonctl(...words: string[]): Promise<string> {
  const apiHost = `http://127.0.0.1:${program.httpPort}/api/v2`;
  return runNeonctl({ apiHost, apiKey: await program.apiKey(), folder }, words);
}

const asJson = async (...words: string[]) => JSON.parse(await neonctl(...words, '--output', 'json'));

describe.skipIf(!hasNeonctl)('neonctl', () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'cn-neonctl-'));
    program = await Program.create();
    await program.start();
    const { body } = await program.api('POST', '/projects', { project: { name: 'by hand' } });
    projectId = body.project.id;
    await program.settle(projectId);
  });
  afterAll(async () => {
    await program.destroy();
    await rm(folder, { recursive: true, force: true });
  });

  it('knows who it is, and lists projects', async () => {
    expect(await asJson('me')).toMatchObject({ login: 'admin' });
    const { body } = await program.api('GET', '/users/me/organizations');
    const listed = await asJson('projects', 'list', '--org-id', body.organizations[0].id);
    expect(listed.map(({ id }: { id: string }) => id)).toEqual([projectId]);
  });

  it('makes, lists, renames and deletes a branch', async () => {
    const made = await asJson('branches', 'create', '--project-id', projectId, '--name', 'dev');
    expect(made.branch.name).toBe('dev');
    await program.settle(projectId);
    const names = async () =>
      (await asJson('branches', 'list', '--project-id', projectId)).map(({ name }: { name: string }) => name);
    expect((await names()).sort()).toEqual(['dev', 'main']);
    await neonctl('branches', 'rename', 'dev', 'next', '--project-id', projectId);
    expect((await names()).sort()).toEqual(['main', 'next']);
    await neonctl('branches', 'delete', 'next', '--project-id', projectId);
    expect(await names()).toEqual(['main']);
  });

  it('makes roles and databases, and gives the string to connect with', async () => {
    await neonctl('roles', 'create', '--project-id', projectId, '--branch', 'main', '--name', 'reader');
    await neonctl('databases', 'create', '--project-id', projectId, '--name', 'shop', '--owner-name', 'reader');
    await program.settle(projectId);
    const words = ['--project-id', projectId, '--role-name', 'reader', '--database-name', 'shop'];
    const printed = new URL((await neonctl('connection-string', 'main', ...words)).trim());
    const { body } = await program.api(
      'GET',
      `/projects/${projectId}/connection_uri?database_name=shop&role_name=reader`,
    );
    const wanted = new URL(body.uri);
    expect([printed.username, printed.password, printed.pathname]).toEqual([
      wanted.username,
      wanted.password,
      wanted.pathname,
    ]);
  });
});
