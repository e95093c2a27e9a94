/**
 * SQL over HTTP and WebSockets on the whole program: everybody who has a password somewhere, or none, asks for the rows
 * of the victim's project, with its compute named in each of the ways that there are. On loopback no address is refused
 * for having failed often, so that each attempt is judged by what it sends.
 */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { Client as ServerlessClient } from '@neondatabase/serverless';
import { WebSocket } from 'ws';
import { Program } from '../../helpers/program.ts';
import { type PartReport, progressOf } from './report.ts';
import { projectMark } from './stage.ts';
import { makeTenant, type Tenant, type WireAttempt, wireAttempts } from './wire-attempts.ts';

const query = 'select text from secrets';
const answerMsMax = 60_000;
/** At a time. */
const lanes = 4;

type Send = (program: Program, attempt: WireAttempt) => Promise<string>;

const transports: Readonly<Record<string, Send>> = { 'SQL over HTTP': overHttp, WebSocket: overWebSocket };

export interface WireOptions {
  readonly choose?: (attempts: readonly WireAttempt[]) => readonly WireAttempt[];
}

export async function sweepWire({ choose = (all) => all }: WireOptions = {}): Promise<PartReport> {
  const program = await Program.create();
  try {
    await program.start();
    const victim = await makeTenant(program, projectMark);
    const attacker = await makeTenant(program, 'attacker');
    const leaks: string[] = [];
    const rows: [string, number, number][] = [];
    for (const [transport, send] of Object.entries(transports)) {
      const attempts = choose(wireAttempts(victim, attacker, await program.apiKey()));
      const say = progressOf(transport);
      await requireShown(program, send, victim);
      let refused = 0;
      const left = attempts.entries();
      const lane = async () => {
        for (const [at, attempt] of left) {
          const answer = await send(program, attempt).catch((error: Error) => error.message);
          if (answer.includes(projectMark)) leaks.push(`${transport}: ${attempt.name}: ${answer.slice(0, 300)}`);
          else if (!answer.includes(attacker.mark)) refused++;
          say(at, attempts.length);
        }
      };
      await Promise.all(Array.from({ length: lanes }, lane));
      await requireShown(program, send, victim);
      rows.push([transport, attempts.length, refused]);
    }
    return {
      part: 'wire',
      attempts: rows.reduce((sum, [, count]) => sum + count, 0),
      leaks,
      changes: [],
      tables: [{ title: 'Rows of somebody else, asked for', columns: ['transport', 'attempts', 'refused'], rows }],
    };
  } finally {
    await program.destroy();
  }
}

/** What is looked for can be seen by whom it belongs to, before and after. */
async function requireShown(program: Program, send: Send, victim: Tenant): Promise<void> {
  const { role, password, host, database } = victim;
  const answer = await send(program, { name: 'the owner', role, password, host, database });
  if (!answer.includes(projectMark)) throw new Error(`the owner does not see the row: ${answer}`);
}

const uriOf = ({ role, password, host, database, options }: WireAttempt) =>
  `postgresql://${encodeURIComponent(role)}:${encodeURIComponent(password)}@${host}/${database}` +
  (options === undefined ? '' : `?options=${encodeURIComponent(options)}`);

async function overHttp({ httpPort }: Program, attempt: WireAttempt): Promise<string> {
  const asking = request({
    host: '127.0.0.1',
    port: httpPort,
    method: 'POST',
    path: `/sql${attempt.address === undefined ? '' : `?endpoint=${attempt.address}`}`,
    headers: {
      'content-type': 'application/json',
      'neon-connection-string': uriOf(attempt),
      ...(attempt.token !== undefined && { authorization: `Bearer ${attempt.token}` }),
    },
    agent: false,
    timeout: answerMsMax,
  });
  asking.end(JSON.stringify({ query, params: [] }));
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  return `${response.statusCode} ${await text(response)}`;
}

/** The hostname in the address of the WebSocket is the one that names the endpoint, unless `address` is given. */
async function overWebSocket({ httpPort }: Program, attempt: WireAttempt): Promise<string> {
  const { address, host } = attempt;
  const named = address === undefined ? host : host.replace(/^[^.]+/, address);
  const client = new ServerlessClient(uriOf(attempt));
  Object.assign(client.neonConfig, {
    webSocketConstructor: WebSocket,
    wsProxy: () => `127.0.0.1:${httpPort}/v2?address=${named}:5432`,
    useSecureWebSocket: false,
    pipelineConnect: false,
  });
  client.on('error', () => {});
  try {
    await client.connect();
    return JSON.stringify((await client.query(query)).rows);
  } finally {
    client.end().catch(() => undefined);
  }
}
