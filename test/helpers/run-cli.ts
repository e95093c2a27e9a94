/** The command line in this process, against any API; what it would do to the machine itself is left out. */
import { PassThrough } from 'node:stream';
import type { RoleParts } from '../../src/cli/kit/copy-parts.ts';
import type { CliParts } from '../../src/cli/kit/parts.ts';
import { runCli } from '../../src/cli/program.ts';
import { makeServerRoles, makeServerSettings, readServerRoles } from '../../src/copier/server-roles.ts';
import { environmentWith } from '../../src/lib/config.ts';
import { isPasswordOf } from '../../src/lib/scram-verifier.ts';

export interface CliOutcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Roles as the program itself reads and makes them. */
export const realRoles: RoleParts = {
  isPasswordOf,
  read: readServerRoles,
  make: makeServerRoles,
  makeSettings: makeServerSettings,
};

const notHere = () => Promise.reject(new Error('not here'));

export async function catnapCommand(args: readonly string[], changes: Partial<CliParts> = {}): Promise<CliOutcome> {
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const code = await runCli(args, {
    version: '1.2.3',
    command: ['/nonexistent/node', '/nonexistent/catnap'],
    asCalledHere: (text) => text,
    psqlEnvironment: () => environmentWith({ PGPASSWORD: undefined }),
    home: '/nonexistent',
    folder: '/nonexistent',
    url: 'http://127.0.0.1:1',
    apiKey: 'configured-key',
    processNames: ['api', 'worker', 'proxy'],
    up: async () => 0,
    doctor: async () => [],
    storage: { plan: notHere, create: notHere, status: notHere },
    kubernetesManifests: notHere,
    restore: { keyLine: undefined, installation: notHere, project: notHere },
    backup: { verify: notHere, key: async () => undefined },
    service: { plan: notHere, install: notHere },
    eject: { check: notHere, copy: notHere },
    importDatabase: notHere,
    roles: { isPasswordOf: notHere, read: notHere, make: notHere, makeSettings: notHere },
    move: { inspect: notHere, copy: notHere, forget: notHere, abandon: notHere },
    upgrade: { check: notHere, undo: notHere },
    recoverKey: notHere,
    stdin: new PassThrough(),
    stdout,
    stderr,
    ...changes,
  });
  return { code, out: String(stdout.read() ?? ''), err: String(stderr.read() ?? '') };
}
