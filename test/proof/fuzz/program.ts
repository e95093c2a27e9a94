/** A whole Catnap under openings, sessions, SQL over HTTP and WebSockets; its proxy lives and keeps its memory. */

import { readMetric } from '../../helpers/auth-app.ts';
import { eventually } from '../../helpers/eventually.ts';
import { Program } from '../../helpers/program.ts';
import { ask } from '../../helpers/query.ts';
import { Random } from '../random.ts';
import { createProgress, Findings } from './findings.ts';
import { residentOf } from './memory.ts';
import { leaveSession, mixSessions } from './sessions.ts';
import { trySql, tryWebSocket } from './sql-http.ts';
import { tryOpening } from './startup.ts';
import type { Target } from './wire-client.ts';

export interface ProgramFuzzResult {
  readonly counts: Readonly<Record<string, number>>;
  readonly findings: readonly string[];
  readonly proxyMbAfterWarmUp: number;
  readonly proxyMbAtEnd: number;
}

const atOnce = 8;

export async function fuzzProgram(options: {
  readonly seed: number;
  readonly rounds: number;
  readonly minutes: number;
}): Promise<ProgramFuzzResult> {
  const program = await Program.create({ CATNAP_RATE_LIMIT: 'off' });
  try {
    await program.start();
    return await run(program, options);
  } finally {
    await program.destroy();
  }
}

async function run(program: Program, { seed, rounds, minutes }: { seed: number; rounds: number; minutes: number }) {
  const { body } = await program.api('POST', '/projects', { project: { name: 'fuzz' } });
  const uri: string = body.connection_uris[0].connection_uri;
  await ask(uri, 'create table fuzz_rows (a text)');
  const { username, password, pathname } = new URL(uri);
  const target: Target = {
    address: { host: '127.0.0.1', port: program.pgPort },
    user: username,
    database: pathname.slice(1),
    password: `endpoint=${body.endpoints[0].id}-pooler;${decodeURIComponent(password)}`,
  };
  const web = { httpPort: program.httpPort, uri };
  const findings = new Findings();
  const counts = { openings: 0, sessions: 0, sql: 0, webSockets: 0 };
  const random = new Random(seed);
  const report = createProgress('fuzz program');
  const [proxy = 0] = await program.processPids('proxy');
  const beganAt = performance.now();
  const endsAt = beganAt + minutes * 60_000;
  // A quarter of the rounds, or of the time if that is over first.
  const isWarm = (round: number) =>
    round >= Math.floor(rounds / 4) || performance.now() >= beganAt + (endsAt - beganAt) / 4;
  let proxyMbAfterWarmUp: number | null = null;
  for (let round = 0; round < rounds && performance.now() < endsAt; round++) {
    const many = <T>(work: () => Promise<T>) => Promise.all(Array.from({ length: atOnce }, work));
    await many(() => tryOpening(random, target, findings));
    await many(() => trySql(random, web, findings));
    await many(() => tryWebSocket(random, web, findings));
    await mixSessions(random, target, atOnce, findings);
    await leaveSession(random, target, findings);
    counts.openings += atOnce;
    counts.sql += atOnce;
    counts.webSockets += atOnce;
    counts.sessions += atOnce + 1;
    if (proxyMbAfterWarmUp === null && isWarm(round)) proxyMbAfterWarmUp = residentOf(proxy);
    report(() => `${round} of ${rounds} rounds, ${findings.count} findings, seed ${seed}`);
  }
  const answer = await ask(uri, 'select 42');
  if (answer !== '42') findings.add('a client after all of it gets a wrong answer', answer);
  const [still] = await program.processPids('proxy');
  if (still !== proxy) findings.add('the proxy process has died', program.output.slice(-2_000));
  await eventually(async () => {
    const open = await readMetric(program, 'catnap_proxy_connections\\{proxy="\\d+"\\}');
    if (open > 0) throw new Error(`${open} connections are still open`);
  }).catch((error: unknown) => findings.add(String(error), ''));
  const proxyMbAtEnd = residentOf(proxy);
  const warm = proxyMbAfterWarmUp ?? proxyMbAtEnd;
  return { counts, findings: findings.list(), proxyMbAfterWarmUp: warm, proxyMbAtEnd };
}
