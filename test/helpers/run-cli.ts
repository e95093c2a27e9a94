/** The command line in this process, against any API; what it would do to the machine itself is left out. */
import { PassThrough } from 'node:stream';
import type { CliParts } from '../../src/cli/kit/parts.ts';
import { runCli } from '../../src/cli/program.ts';

export interface CliOutcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

const notHere = () => Promise.reject(new Error('not here'));

export async function catnapCommand(args: readonly string[], changes: Partial<CliParts> = {}): Promise<CliOutcome> {
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const code = await runCli(args, {
    version: '1.2.3',
    asCalledHere: (text) => text,
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
    move: {
      inspect: notHere,
      isPasswordOf: notHere,
      readRoles: notHere,
      makeRoles: notHere,
      makeSettings: notHere,
      copy: notHere,
      forget: notHere,
      abandon: notHere,
    },
    upgrade: { check: notHere, undo: notHere },
    recoverKey: notHere,
    stdin: new PassThrough(),
    stdout,
    stderr,
    ...changes,
  });
  return { code, out: String(stdout.read() ?? ''), err: String(stderr.read() ?? '') };
}
