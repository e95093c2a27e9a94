/**
 * The `catnap` command as a program: reads the configuration, hands the commands what they need, and turns whatever
 * happens into one line and an exit code.
 */
import { fileURLToPath } from 'node:url';
import { runCli } from './cli/program.ts';
import { asCalledHere, commandName } from './lib/command-name.ts';
import { type Config, ConfigError, environmentWith, localUrl, readBackupKeyLine, readConfig } from './lib/config.ts';
import { errorText } from './lib/errors.ts';
import { isPasswordOf } from './lib/scram-verifier.ts';
import { readCommit, readVersion } from './lib/version.ts';
import { runChecks } from './machine/doctor/doctor.ts';
import { checkEject, eject } from './machine/eject.ts';
import { readBackupKey } from './machine/key-files.ts';
import {
  findServicePorts,
  findSystemdVersion,
  installService,
  isAccount,
  planService,
  settingsFileOf,
} from './machine/service.ts';
import { createStorage, planStorage } from './machine/storage/create.ts';
import { storageStatus } from './machine/storage/status.ts';
import { processNames } from './processes/channel/messages.ts';
import { runCatnap } from './processes/parent/main.ts';
import { checkUpgradeHere, undoUpgradeHere } from './processes/parent/upgrade.ts';
import { recoverKey } from './processes/recover-key.ts';
import { restoreFromBackup, restoreProjectFromBackup, verifyFromBackup } from './processes/restore.ts';

async function main(): Promise<number> {
  let config: Config | undefined;
  try {
    config = readConfig();
    return await run(config);
  } catch (error) {
    const text = errorText(error);
    process.stderr.write(`catnap: ${config ? asCalledHere(text, commandName(config.programPath)) : text}\n`);
    if (config?.logLevel === 'debug' && error instanceof Error) process.stderr.write(`${error.stack}\n`);
    return error instanceof ConfigError ? 2 : 1;
  }
}

function run(config: Config): Promise<number> {
  const isRoot = process.getuid?.() === 0;
  return runCli(process.argv.slice(2), {
    version: versionText(),
    command: [process.execPath, process.argv[1] ?? fileURLToPath(import.meta.url)],
    asCalledHere: (text) => asCalledHere(text, commandName(config.programPath)),
    // libpq would take this one before that of the password file.
    psqlEnvironment: () => environmentWith({ PGPASSWORD: undefined }),
    home: config.home,
    folder: process.cwd(),
    url: localUrl(config),
    apiKey: config.apiKey,
    processNames,
    up: ({ processes, stopComputes }) =>
      runCatnap(config, { processes: processNames.filter((name) => processes.includes(name)), stopComputes }),
    doctor: () => runChecks(config),
    storage: {
      plan: (bytes) => planStorage(config, bytes),
      create: (bytes, say) => createStorage(config, bytes, say),
      status: () => storageStatus(config),
    },
    kubernetesManifests: async (options) => (await import('./machine/kubernetes/render.ts')).render(options),
    restore: {
      keyLine: readBackupKeyLine(),
      installation: async (request, say) => restoreFromBackup(config, request, say),
      project: async (request, say) => restoreProjectFromBackup(config, request, say),
    },
    backup: {
      key: () => readBackupKey(config.home),
      verify: (sample, say) => verifyFromBackup(config, sample, say),
    },
    service: {
      plan: async (account, keepsPorts) =>
        planService({
          account,
          isAccountKnown: account === undefined || (await isAccount(account)),
          ports: keepsPorts ? await findServicePorts(settingsFileOf(isRoot)) : undefined,
          portsOfShell: config,
          entry: fileURLToPath(new URL('bin.js', import.meta.url)),
          isRoot,
          systemdVersion: await findSystemdVersion(),
        }),
      install: installService,
    },
    eject: { check: (place) => checkEject(config, place), copy: (request) => eject(config, request) },
    importDatabase: async (request, report) => (await import('./copier/copy.ts')).copyDatabase(request, report),
    roles: {
      isPasswordOf: async (verifier, password) => isPasswordOf(verifier, password),
      read: async (source, names) => (await import('./copier/server-roles.ts')).readServerRoles(source, names),
      make: async (target, roles) => (await import('./copier/server-roles.ts')).makeServerRoles(target, roles),
      makeSettings: async (target, all) => (await import('./copier/server-roles.ts')).makeServerSettings(target, all),
    },
    move: {
      inspect: async (source) => (await import('./copier/moving.ts')).inspectDatabase(source),
      copy: async (request, report) => (await import('./copier/moving.ts')).copyForMove(request, report),
      forget: async (target) => (await import('./copier/copy.ts')).forgetCopy(target),
      abandon: async (source) => (await import('./copier/moving.ts')).abandonCopy(source),
    },
    upgrade: {
      check: () => checkUpgradeHere(config),
      undo: (to, say) => undoUpgradeHere(config, to, say),
    },
    recoverKey: () => recoverKey(config),
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
  });
}

function versionText(): string {
  const commit = readCommit();
  return commit === null ? readVersion() : `${readVersion()} (${commit})`;
}

// `catnap … | head` closes the pipe early; that is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});
// Whoever cannot be told what went wrong sees the exit code; a Catnap that runs goes on.
process.stderr.on('error', () => {});
void main().then((code) => {
  process.exitCode = code;
});
