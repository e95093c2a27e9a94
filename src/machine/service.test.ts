import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findServicePorts, installService, isAccount, planService, renderSocketUnit, renderUnit } from './service.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'catnap-service-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const request = {
  account: undefined,
  isAccountKnown: true,
  entry: '/opt/catnap/dist/bin.js',
  isRoot: true,
  systemdVersion: 255,
};
const hasAnalyze = spawnSync('systemd-analyze', ['--version']).status === 0;

describe('the unit', () => {
  test('of root is run by the machine, and lets mounts and servers outlive it', () => {
    const { unitFile, settingsFile, text, next, notes } = planService(request);
    expect([unitFile, settingsFile]).toEqual(['/etc/systemd/system/catnap.service', '/etc/catnap.env']);
    expect(text).toContain('KillMode=process\n');
    expect(text).toContain('Delegate=cpu memory pids\n');
    expect(text).not.toMatch(/^(User|DelegateSubgroup|CapabilityBoundingSet)=/m);
    // Each of these would give the service mounts of its own, which are gone with it.
    expect(text).not.toMatch(/^(Private|Protect|ReadWrite|ReadOnly|Inaccessible|Bind|Root|TemporaryFileSystem)\w*=/m);
    expect(next[1]).toBe('systemctl enable --now catnap');
    expect(notes).toEqual([]);
  });

  test('of an account has no rights, and a group below its own for the computes', () => {
    const { text } = planService({ ...request, account: 'catnap' });
    expect(text).toMatch(/^User=catnap$/m);
    expect(text).toMatch(/^DelegateSubgroup=catnap$/m);
    expect(text).toMatch(/^CapabilityBoundingSet=$/m);
  });

  test('of an ordinary user belongs to the manager of that user', () => {
    const { unitFile, text, next } = planService({ ...request, isRoot: false });
    expect(unitFile).toMatch(/\/\.config\/systemd\/user\/catnap\.service$/);
    expect(text).toMatch(/^WantedBy=default\.target$/m);
    expect(text).not.toMatch(/^User=/m);
    expect(next.join('\n')).toContain('enable-linger');
    expect(() => planService({ ...request, isRoot: false, account: 'other' })).toThrow('--user needs root');
  });

  test('is refused for an account that the machine does not have', async () => {
    const stranger = { ...request, account: 'nobody-here', isAccountKnown: await isAccount('nobody-here') };
    expect(() => planService(stranger)).toThrow('--user nobody-here is no account of this machine');
    expect(await isAccount('root')).toBe(true);
    expect(await isAccount('--version')).toBe(false);
  });

  test('of the ports has both, and the service needs it', () => {
    const ports = { bind: '0.0.0.0', httpPort: 7070, pgPort: 5432 };
    const { socket, text, next } = planService({ ...request, ports });
    expect(socket?.file).toBe('/etc/systemd/system/catnap.socket');
    expect(socket?.text).toMatch(/^ListenStream=0\.0\.0\.0:7070\nListenStream=0\.0\.0\.0:5432$/m);
    expect(text).toMatch(/^Requires=catnap\.socket$/m);
    expect(next[1]).toBe('systemctl enable --now catnap.socket catnap');
    expect(renderSocketUnit({ ...ports, bind: '::' })).toMatch(/^ListenStream=\[::\]:7070$/m);
    expect(planService(request).socket).toBeNull();
    expect(planService(request).text).not.toContain('catnap.socket');
  });

  test('has the ports of the settings file, whatever the shell has', async () => {
    const file = join(folder, 'ports.env');
    expect(await findServicePorts(file)).toMatchObject({ bind: '127.0.0.1', httpPort: 7070, pgPort: 5432 });
    await writeFile(file, '# Ours.\nCATNAP_HTTP_PORT=8080\nCATNAP_BIND="0.0.0.0"\n');
    const ports = await findServicePorts(file);
    expect(ports).toMatchObject({ bind: '0.0.0.0', httpPort: 8080, pgPort: 5432 });
    expect(planService({ ...request, ports, portsOfShell: ports }).notes).toEqual([]);
    const portsOfShell = { ...ports, httpPort: 9090 };
    expect(planService({ ...request, ports, portsOfShell }).notes).toEqual([
      'The service takes its ports from /etc/catnap.env: 8080 and 5432 on 0.0.0.0, and not 9090 and 5432 on 0.0.0.0 as in this shell.',
    ]);
    expect(planService({ ...request, portsOfShell }).notes).toEqual([]);
    await writeFile(file, 'CATNAP_HTTP_PORT=x\n');
    await expect(findServicePorts(file)).rejects.toThrow(/ports\.env: CATNAP_HTTP_PORT="x" is not valid; allowed/);
  });

  test('says what this machine cannot do', () => {
    const old = planService({ ...request, account: 'catnap', systemdVersion: 252 }).notes;
    expect(old).toEqual([expect.stringContaining('systemd 254 or newer, and this is 252')]);
    expect(planService({ ...request, systemdVersion: 252 }).notes).toEqual([]);
    expect(planService({ ...request, systemdVersion: null }).notes).toEqual([expect.stringContaining('no systemd')]);
    const cached = planService({ ...request, entry: '/root/.npm/_npx/12/node_modules/catnap/dist/bin.js' }).notes;
    expect(cached).toEqual([expect.stringContaining('cache of npx')]);
    expect(() => planService({ ...request, account: 'a b' })).toThrow('is not an account');
  });

  test.skipIf(!hasAnalyze)('is one that systemd takes, wherever the program is', async () => {
    // A path with everything that a unit could misread; systemd looks whether the program is there.
    const node = join(folder, 'no de 100%');
    await writeFile(node, '#!/bin/sh\n', { mode: 0o755 });
    for (const [name, facts] of Object.entries({
      root: { account: null, isOfMachine: true },
      account: { account: 'catnap', isOfMachine: true },
      user: { account: null, isOfMachine: false },
    })) {
      const file = join(folder, `catnap-${name}.service`);
      const entry = '/opt/c"at $nap/bin.js';
      await writeFile(file, renderUnit({ node, entry, settingsFile: '/etc/catnap.env', ...facts }));
      // As a unit of the machine each of them: a manager of a user is not everywhere.
      const socket = file.replace('.service', '.socket');
      await writeFile(socket, renderSocketUnit({ bind: '::', httpPort: 7070, pgPort: 5432 }));
      const { stderr, status } = spawnSync('systemd-analyze', ['verify', '--man=no', file, socket], {
        encoding: 'utf8',
      });
      // Older ones do not know the setting yet, say so, and go on.
      const problems = stderr
        .split('\n')
        .filter((line) => line.includes('catnap') && !line.includes('DelegateSubgroup'));
      expect({ name, status, problems }).toEqual({ name, status: 0, problems: [] });
    }
  });
});

test('installing writes the unit, and keeps settings that are there', async () => {
  const plan = {
    ...planService(request),
    unitFile: join(folder, 'a/catnap.service'),
    settingsFile: join(folder, 'b/env'),
    socket: { file: join(folder, 'a/catnap.socket'), text: '[Socket]\n' },
  };
  await installService(plan);
  expect(await readFile(plan.unitFile, 'utf8')).toBe(plan.text);
  expect(await readFile(plan.socket.file, 'utf8')).toBe('[Socket]\n');
  expect((await stat(plan.settingsFile)).mode & 0o777).toBe(0o600);
  await writeFile(plan.settingsFile, 'CATNAP_HTTP_PORT=1\n');
  await installService(plan);
  expect(await readFile(plan.settingsFile, 'utf8')).toBe('CATNAP_HTTP_PORT=1\n');
});
