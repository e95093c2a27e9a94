/**
 * The `catnap` command as a program: reads the configuration, hands the commands what they need, and turns whatever
 * happens into one line and an exit code.
 */
import { readFileSync } from 'node:fs';
import { runCli } from './cli/program.ts';
import { type Config, ConfigError, readConfig } from './lib/config.ts';
import { errorText } from './lib/errors.ts';
import { runChecks } from './machine/doctor/doctor.ts';
import { createStorage, planStorage } from './machine/storage/create.ts';
import { storageStatus } from './machine/storage/status.ts';
import { processNames } from './processes/channel/messages.ts';
import { runCatnap } from './processes/parent/main.ts';

async function main(): Promise<number> {
  let config: Config | undefined;
  try {
    config = readConfig();
    return await run(config);
  } catch (error) {
    process.stderr.write(`catnap: ${errorText(error)}\n`);
    if (config?.logLevel === 'debug' && error instanceof Error) process.stderr.write(`${error.stack}\n`);
    return error instanceof ConfigError ? 2 : 1;
  }
}

function run(config: Config): Promise<number> {
  return runCli(process.argv.slice(2), {
    version: readVersion(),
    home: config.home,
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
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
  });
}

/** The address itself, not the public URL: that one may lead through a proxy that this machine cannot reach. */
function localUrl({ bind, httpPort }: Config): string {
  const everywhere = bind === '0.0.0.0' || bind === '::';
  const host = everywhere ? 'localhost' : bind.includes(':') ? `[${bind}]` : bind;
  return `http://${host}:${httpPort}`;
}

function readVersion(): string {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return String(JSON.parse(manifest).version);
}

// `catnap … | head` closes the pipe early; that is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});
process.exitCode = await main();
