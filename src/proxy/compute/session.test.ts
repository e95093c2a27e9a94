/** Connecting to a compute that misbehaves: a scripted server, with one act for each connection. */
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { stays } from '../../../test/helpers/eventually.ts';
import { scriptControlPlane } from '../../../test/helpers/proxy.ts';
import { CatnapError } from '../../lib/errors.ts';
import { buildVerifier, deriveKeys, parseVerifier, type ScramVerifier } from '../../lib/scram-verifier.ts';
import type { Identity } from '../client/authenticate.ts';
import type { DialAddress } from '../kit/control-plane.ts';
import { defaultLimits } from '../kit/limits.ts';
import { MessageStream } from '../protocol/message-stream.ts';
import {
  authenticationOk,
  authenticationSasl,
  authenticationSaslContinue,
  authenticationSaslFinal,
  backendKeyData,
  errorResponse,
  parseSaslInitialResponse,
} from '../protocol/messages.ts';
import { finishServerExchange, parseClientFirst, scramMechanism, startServerExchange } from '../protocol/scram.ts';
import { parseFirstPacket } from '../protocol/startup.ts';
import { cstring, encodeMessage } from '../protocol/wire.ts';
import { ComputeRefusal, connectDirectly, connectToCompute } from './session.ts';
import { createWaker } from './wake.ts';

type Act =
  | 'drop'
  | 'hang'
  | 'starting'
  | 'stopping'
  | 'full'
  | 'reserved'
  | 'trusting'
  | 'impostor'
  | 'new password'
  | 'password refused'
  | 'ok';

/** The message of Postgres. */
const reserved = 'remaining connection slots are reserved for roles with the SUPERUSER attribute';
const verifier = parse(buildVerifier('right', undefined, 1));
let directory: string;
let server: Server | undefined;
let sockets: Socket[];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'catnap-session-'));
  sockets = [];
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)));
  server = undefined;
  await rm(directory, { recursive: true, force: true });
});

function parse(text: string): ScramVerifier {
  const parsed = parseVerifier(text);
  if (!parsed) throw new Error('no verifier');
  return parsed;
}

async function startCompute(script: Act[]): Promise<DialAddress> {
  const path = join(directory, 's');
  server = createServer((socket) => {
    sockets.push(socket);
    const act = script.shift();
    if (!act) throw new Error('one connection more than the script has');
    perform(new MessageStream(socket, 10_000), act).catch(() => socket.destroy());
  });
  await new Promise<void>((resolve) => server?.listen(path, resolve));
  return { kind: 'unix', path };
}

async function perform(messages: MessageStream, act: Act): Promise<void> {
  const fail = (sqlState: string) => messages.stream.end(errorResponse({ sqlState, message: `says ${sqlState}` }));
  if (act === 'drop') return void messages.stream.destroy();
  const startup = parseFirstPacket(await messages.readPacket());
  if (act === 'hang') return;
  if (act === 'starting') return void fail('57P03');
  if (act === 'stopping') return void fail('57P01');
  if (act === 'full') return void fail('53300');
  if (act === 'reserved') return void messages.stream.end(errorResponse({ sqlState: '53300', message: reserved }));
  if (act !== 'trusting') {
    messages.write(authenticationSasl([scramMechanism]));
    const initial = parseSaslInitialResponse((await messages.readMessage()).body);
    const first = parseClientFirst(initial.data ?? '', initial.mechanism, [scramMechanism]);
    const known = act === 'new password' ? parse(buildVerifier('other', undefined, 1)) : verifier;
    const exchange = startServerExchange(first, known);
    messages.write(authenticationSaslContinue(exchange.serverFirst));
    const proven = finishServerExchange(exchange, (await messages.readMessage()).body.toString(), null);
    if (!proven || act === 'password refused') return void fail('28P01');
    messages.write(authenticationSaslFinal(act === 'impostor' ? 'v=AAAA' : proven.serverFinal));
  }
  messages.write(authenticationOk);
  const name = startup.kind === 'startup' ? (startup.parameters.get('application_name') ?? '') : '';
  messages.write(encodeMessage('S', cstring('application_name'), cstring(name)));
  messages.write(backendKeyData({ processId: 7, secret: 8 }));
  messages.write(encodeMessage('Z', Buffer.from('I')));
}

async function identify(): Promise<Identity> {
  return {
    route: { endpointId: 'ep-a', pooled: false },
    role: 'ann',
    keys: await deriveKeys('right', verifier.salt, verifier.iterations),
    verifier,
    facts: { verifier: null, disabled: false, allowedIps: [] },
  };
}

async function connect(
  addresses: readonly DialAddress[],
  signal = new AbortController().signal,
  connecting = connectToCompute,
) {
  const identity = await identify();
  const wakes: DialAddress[] = [];
  const wake = async () => {
    const address = addresses[Math.min(wakes.length, addresses.length - 1)];
    if (!address) throw new Error('no address');
    wakes.push(address);
    return address;
  };
  const limits = { ...defaultLimits, permitMs: 300, dialAttempts: 3, dialRetryMs: 1, dialMs: 2_000, unreachableMs: 0 };
  const parameters = new Map([['application_name', 'test']]);
  try {
    const login = await connecting({ identity, parameters, waker: { wake }, limits, signal });
    login.socket.destroy();
    return { login, wakes: wakes.length, failure: null };
  } catch (thrown) {
    return { login: null, wakes: wakes.length, failure: thrown };
  }
}

describe('connectToCompute', () => {
  it('logs in and returns the greeting, the key and ReadyForQuery', async () => {
    const { login, wakes } = await connect([await startCompute(['ok'])]);
    expect(wakes).toBe(1);
    expect(login?.key).toEqual({ processId: 7, secret: 8 });
    expect(login?.greeting).toEqual(encodeMessage('S', cstring('application_name'), cstring('test')));
    expect(login?.ready).toEqual(encodeMessage('Z', Buffer.from('I')));
  });

  it.each<[Act[], number]>([
    [['starting', 'ok'], 1],
    [['drop', 'starting', 'ok'], 1],
    [['starting', 'starting', 'stopping', 'ok'], 2],
    [['hang', 'ok'], 1],
  ])('goes on through %j', async (script, wakesExpected) => {
    const { login, wakes } = await connect([await startCompute(script)]);
    expect(login?.kind).toBe('open');
    expect(wakes).toBe(wakesExpected);
    expect(script).toEqual([]);
  });

  it('asks to wake once more when the address is stale', async () => {
    const stale: DialAddress = { kind: 'unix', path: join(directory, 'gone') };
    const { login, wakes } = await connect([stale, await startCompute(['ok'])]);
    expect(login?.kind).toBe('open');
    expect(wakes).toBe(2);
  });

  it.each<[Act, string, string]>([
    ['new password', 'password_wrong', "password authentication failed for user 'ann'"],
    ['password refused', 'password_wrong', "password authentication failed for user 'ann'"],
    ['impostor', 'unavailable', "Couldn't connect to compute node"],
    ['trusting', 'unavailable', "Couldn't connect to compute node"],
    ['starting', 'unavailable', "Couldn't connect to compute node"],
  ])('gives up on a server that is: %s', async (act, kind, message) => {
    const { failure } = await connect([await startCompute(Array<Act>(6).fill(act))]);
    expect(failure).toMatchObject({ kind, message });
  });

  it('passes on any other error of the server as it is', async () => {
    const { failure, wakes } = await connect([await startCompute(['full'])]);
    expect(failure).toBeInstanceOf(ComputeRefusal);
    expect(failure).toMatchObject({ sqlState: '53300', message: 'says 53300' });
    expect(wakes).toBe(1);
  });

  it('asks a full server again for a direct session', async () => {
    const { login } = await connect([await startCompute(['reserved', 'reserved', 'ok'])], undefined, connectDirectly);
    expect(login).toMatchObject({ kind: 'open' });
  });

  it.each<[Act, string]>([
    ['reserved', 'sorry, too many clients already'],
    ['full', 'says 53300'],
  ])('refuses a direct session at a server that is %s: %s', async (act, message) => {
    const address = await startCompute(Array<Act>(100).fill(act));
    expect((await connect([address], undefined, connectDirectly)).failure).toMatchObject({ message });
  });

  it('stops when the client leaves', async () => {
    const leaving = new AbortController();
    const connecting = connect([await startCompute(['hang'])], leaving.signal);
    await expect.poll(() => sockets.length).toBe(1);
    leaving.abort(new Error('gone'));
    expect((await connecting).failure).toMatchObject({ message: 'gone' });
    await expect.poll(() => sockets[0]?.closed).toBe(true);
  });
});

/** A wake that can be held up, and a server that has come up meanwhile. */
async function wakeSlowly(script: Act[], open: (address: DialAddress) => DialAddress) {
  const address: DialAddress = { ...(await startCompute(script)), generation: 2 };
  let tellReady: (address: DialAddress) => void = () => {};
  let openRoute = () => {};
  const opened = new Promise<void>((resolve) => {
    openRoute = resolve;
  });
  const controlPlane = scriptControlPlane({
    wake: () => opened.then(() => open(address)),
    onReady: (listener) => {
      tellReady = (ready) => listener('ep-a', ready);
    },
  });
  const waker = createWaker(controlPlane, 60_000);
  const client = new AbortController();
  const limits = { ...defaultLimits, dialAttempts: 1, dialMs: 2_000, unreachableMs: 0 };
  const options = { identity: await identify(), parameters: new Map(), waker, limits, signal: client.signal };
  let isConnected = false;
  const connecting = connectToCompute(options).then((login) => {
    isConnected = true;
    return login;
  });
  connecting.catch(() => {});
  return { connecting, client, openRoute, tellReady: () => tellReady(address), isConnected: () => isConnected };
}

describe('a login that begins before the route is open', () => {
  it('is used when it opens, not earlier, and is the only one', async () => {
    const script: Act[] = ['ok'];
    const slow = await wakeSlowly(script, (address) => ({ ...address, sessions: 9 }));
    slow.tellReady();
    await expect.poll(() => sockets.length).toBe(1);
    await stays(() => expect(slow.isConnected()).toBe(false), 50);
    slow.openRoute();
    const login = await slow.connecting;
    expect(login).toMatchObject({ kind: 'open', key: { processId: 7, secret: 8 }, address: { sessions: 9 } });
    expect(script).toEqual([]);
    login.socket.destroy();
  });

  it.each<[string, Act, (address: DialAddress) => DialAddress]>([
    ['leads to a server that was started since', 'ok', (address) => ({ ...address, generation: 3 })],
    ['does not say which server it leads to', 'ok', ({ generation, ...address }) => address],
    ['opens after the server has refused it', 'new password', (address) => address],
    ['opens after the server was not ready', 'starting', (address) => address],
    ['opens after the server has dropped it', 'drop', (address) => address],
  ])('is not used when the route %s', async (_, first, open) => {
    const script: Act[] = [first, 'ok'];
    const slow = await wakeSlowly(script, open);
    slow.tellReady();
    await expect.poll(() => sockets.length).toBe(1);
    slow.openRoute();
    const login = await slow.connecting;
    expect(script).toEqual([]);
    await expect.poll(() => sockets[0]?.closed).toBe(true);
    expect(sockets[1]?.closed).toBe(false);
    login.socket.destroy();
  });

  it('ends when its client leaves', async () => {
    const slow = await wakeSlowly(['ok'], (address) => address);
    slow.tellReady();
    await expect.poll(() => sockets.length).toBe(1);
    slow.client.abort(new Error('gone'));
    await expect(slow.connecting).rejects.toThrow('gone');
    await expect.poll(() => sockets[0]?.closed).toBe(true);
  });

  it('is not begun for a server that nobody waits for', async () => {
    const slow = await wakeSlowly(['ok'], (address) => address);
    slow.openRoute();
    const login = await slow.connecting;
    slow.tellReady();
    await stays(() => expect(sockets).toHaveLength(1), 50);
    login.socket.destroy();
  });
});

type Round = 'ok' | 'drop' | 'hang' | 'full' | 'wake fails' | 'wake hangs' | 'client leaves';

/** Rounds after which the next one follows. */
const retried: readonly Round[] = ['drop', 'hang'];
const last: readonly Round[] = ['ok', 'full', 'wake fails', 'wake hangs', 'client leaves'];
const endings: Readonly<Record<string, string>> = {
  full: 'says 53300',
  'wake fails': 'no room',
  'wake hangs': 'The compute did not wake within 0.04 seconds; please try again',
  'client leaves': 'gone',
};

function everyOrder(length: number): Round[][] {
  const shorter = length > 1 ? everyOrder(length - 1) : [[]];
  const beginnings = shorter.filter((rounds) => rounds.every((round) => retried.includes(round)));
  const longer = beginnings.flatMap((rounds) => [...retried, ...last].map((round) => [...rounds, round]));
  return [...shorter.filter((rounds) => rounds.length > 0 && !beginnings.includes(rounds)), ...longer];
}

describe('every order of wake, refusal, retry, cancel and timeout', () => {
  const orders = everyOrder(3).filter((rounds) => last.includes(rounds.at(-1) ?? 'drop'));

  it('is an order of all of them', () => {
    expect(orders).toHaveLength(5 * (1 + 2 + 4));
  });

  it('ends as its last round determines, leaves no connection open, and does not affect the next client', async () => {
    const script: Act[] = [];
    const address = await startCompute(script);
    const identity = await identify();
    const limits = { ...defaultLimits, dialAttempts: 1, dialMs: 150, unreachableMs: 10_000 };
    const run = async (rounds: readonly Round[]): Promise<string> => {
      const left = [...rounds];
      const client = new AbortController();
      const wake = async (): Promise<DialAddress> => {
        const round = left.shift();
        if (round === 'wake fails') throw new CatnapError('unavailable', 'no room');
        if (round === 'wake hangs') return new Promise(() => {});
        if (round === 'client leaves') setTimeout(() => client.abort(new Error('gone')), 5);
        script.push(round === 'client leaves' ? 'hang' : (round ?? 'ok'));
        return address;
      };
      const waker = createWaker(scriptControlPlane({ wake }), 40);
      const options = { identity, parameters: new Map(), waker, limits, signal: client.signal };
      const ending = await connectToCompute(options).then(
        ({ socket }) => {
          socket.destroy();
          return 'ok';
        },
        (thrown: Error) => thrown.message,
      );
      expect(left).toEqual([]);
      return ending;
    };
    // One after the other, since all of them share one script; together they take a few seconds.
    for (const rounds of orders) {
      const ending = rounds.at(-1) ?? '';
      expect([rounds, await run(rounds)]).toEqual([rounds, endings[ending] ?? ending]);
      expect(await run(['ok'])).toBe('ok');
      script.length = 0;
    }
    await expect.poll(() => sockets.every((socket) => socket.closed)).toBe(true);
  }, 60_000);
});
