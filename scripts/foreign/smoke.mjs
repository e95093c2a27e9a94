/**
 * Programs of ours with drivers that are not JavaScript's, over TLS with a verified name. A program prints a line for
 * each check, and tries one that fails again itself.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './run.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const programMsMax = 300_000;

/** The source is a GOPATH that has pgx v4. */
export async function pgx(source, server) {
  const env = { ...addressOf(server), GOPATH: source, GO111MODULE: 'off' };
  return await outcomesOf('go', ['run', join(here, 'pgx-smoke.go')], { server, env });
}

/** The source is the driver's jar. */
export async function pgjdbc(source, server) {
  const args = ['-cp', source, join(here, 'PgjdbcSmoke.java')];
  return await outcomesOf('java', args, { server, env: addressOf(server) });
}

function addressOf({ tls }) {
  return {
    PGHOST: 'localhost',
    PGPORT: String(tls.port),
    PGSSLMODE: 'verify-full',
    PGSSLROOTCERT: tls.authority,
    PGOPTIONS: tls.options,
  };
}

async function outcomesOf(program, args, { server, env }) {
  const cwd = mkdtempSync(join(tmpdir(), 'catnap-suite-'));
  try {
    const { output } = await run(program, args, { server, cwd, env, ms: programMsMax });
    const lines = [...output.matchAll(/^(passed|failed)\t([^\t\n]+)/gm)];
    if (lines.length === 0) throw new Error(output.slice(-3_000));
    return new Map(lines.map(([, outcome, name]) => [name, outcome]));
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
}
