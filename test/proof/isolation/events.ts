/**
 * The stream of changes as every caller, with what belongs to somebody else in its query, while operations of the
 * victim, of the caller and of the victim's other project begin and end. Nobody hears of an operation that is not
 * theirs, and everybody who may listen hears of their own, so that silence proves something.
 */
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { drain } from '../../helpers/drain.ts';
import { eventually } from '../../helpers/eventually.ts';
import { callersOf, type SweepCaller } from './callers.ts';
import type { PartReport } from './report.ts';
import { projectMark, type Stage } from './stage.ts';

interface Listener {
  readonly caller: SweepCaller;
  readonly asked: string;
  readonly status: number;
  text: string;
  close(): void;
}

export async function sweepEvents(stage: Stage): Promise<PartReport> {
  const address = await stage.elsewhere.api.app.listen({ host: '127.0.0.1', port: 0 });
  const leaks: string[] = [];
  const changes: string[] = [];
  const counts: [string, number, number][] = [];
  for (const caller of callersOf(stage)) {
    const listeners: Listener[] = [];
    for (const query of queries(stage)) listeners.push(await listen(address, caller, query));
    try {
      const open = listeners.filter(({ status }) => status === 200);
      const isDeaf = caller.standing === 'nobody' || caller.hearsNothing === true;
      const isRight = open.length === (isDeaf ? 0 : listeners.length);
      if (!isRight) changes.push(`${caller.name}: ${listeners.map(({ status }) => status).join(', ')} at /events`);
      if (open.length > 0) await causeOperations(stage, caller);
      for (const listener of open) await hearOwn(listener);
      for (const listener of listeners) leaks.push(...heard(stage, listener));
      counts.push([caller.name, listeners.length, open.length]);
    } finally {
      for (const { close } of listeners) close();
    }
  }
  return {
    part: 'events',
    attempts: counts.reduce((sum, [, count]) => sum + count, 0),
    leaks,
    changes,
    tables: [{ title: 'Streams of changes by caller', columns: ['caller', 'asked for', 'opened'], rows: counts }],
  };
}

/** The route reads no query; one that began to would have to look at whose each of these is. */
function queries({ victim }: Stage): string[] {
  const one = ['project_id', 'branch_id', 'endpoint_id', 'operation_id', 'org_id'].map((name) => [name]);
  const asked = [[], ...one, ['project_id', 'branch_id', 'org_id']];
  const values = (names: readonly string[]) =>
    Object.fromEntries(names.map((name) => [name, victim.values[name] ?? '']));
  return asked.map((names) => new URLSearchParams(values(names)).toString());
}

async function listen(address: string, caller: SweepCaller, asked: string): Promise<Listener> {
  const asking = get(`${address}/api/v2/events?${asked}`, { agent: false, headers: caller.headers });
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  const close = () => asking.destroy();
  const listener: Listener = { caller, asked, status: response.statusCode ?? 0, text: '', close };
  response.on('data', (chunk: Buffer) => {
    listener.text += chunk.toString();
  });
  // Cut off by `close`.
  response.on('error', () => undefined);
  return listener;
}

/** The victim's first, so that whoever hears of the last one would have heard of the victim's too. */
async function causeOperations({ elsewhere, victim, tokens }: Stage, { own, standing }: SweepCaller): Promise<void> {
  const { api, driver } = elsewhere;
  const ownerOf = standing === 'sibling' ? tokens.victim : tokens.attacker;
  for (const [holdings, token] of [[victim, tokens.victim] as const, [own, ownerOf] as const]) {
    const { project_id: project, endpoint_id: endpoint } = holdings.values;
    const reply = await api.call('POST', `/api/v2/projects/${project}/endpoints/${endpoint}/restart`, { token });
    if (reply.statusCode >= 300) throw new Error(`a restart was refused: ${reply.statusCode} ${reply.body}`);
    await drain(api.core, driver);
  }
}

const hearOwn = (listener: Listener) =>
  eventually(() => {
    if (!listener.text.includes(`"${listener.caller.own.values.endpoint_id}"`)) {
      throw new Error(`${listener.caller.name} hears nothing of its own computes`);
    }
  });

function heard({ victim }: Stage, { caller, asked, text }: Listener): string[] {
  const { project_id, branch_id, endpoint_id, operation_id } = victim.values;
  const secrets = [projectMark, ...victim.secrets, project_id, branch_id, endpoint_id, operation_id];
  const seen = secrets.filter((secret) => secret !== undefined && text.includes(secret));
  return seen.map((secret) => `${caller.name}: /events?${asked} told of ${secret}`);
}
