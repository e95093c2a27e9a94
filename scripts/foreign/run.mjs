/** Starts the programs of foreign suites, with a server's address in the variables that libpq and others read. */
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';

export const triesMax = 3;

/** The output has both streams. A program that takes too long is ended, and has the code -1. */
export function run(program, args, { server, cwd, env = {}, ms }) {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd,
      env: {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        TZ: 'GMT',
        PGHOST: server.host,
        PGPORT: String(server.port),
        PGUSER: server.user,
        PGPASSWORD: server.password,
        PGDATABASE: server.database,
        // Only where a test asks for it.
        PGSSLMODE: 'disable',
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    const timer = setTimeout(() => child.kill('SIGKILL'), ms);
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    child.on('error', (error) => (output += error.message));
    child.on('close', (code) => {
      clearTimeout(timer);
      const { CATNAP_SUITE_LOG: log } = process.env;
      if (log) appendFileSync(`${log}.${server.kind}`, `--- ${program} ${args.join(' ')}\n${output}\n--- ${code}\n`);
      resolve({ code: code ?? -1, output });
    });
  });
}
