/** Sessions of an address that is no longer allowed, at a real Postgres; only the control plane is scripted. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import { closed, PostgresProxies, readError, scramFinal, silentLog } from '../../../test/helpers/proxy.ts';
import type { AccessRules, ControlPlane } from '../kit/control-plane.ts';
import { MessageStream } from '../protocol/message-stream.ts';
import { parseAuthentication, saslInitialResponse, saslResponse, startupMessage } from '../protocol/messages.ts';
import { scramMechanism, startClientExchange } from '../protocol/scram.ts';
import { cstring, encodeMessage } from '../protocol/wire.ts';
import { createAccessWatch } from './access-watch.ts';

const proxies = new PostgresProxies();
beforeAll(() => proxies.prepare());
afterEach(() => proxies.cleanUp());
afterAll(() => proxies.dispose());

/** A control plane whose rules change when the test says so. */
function scriptRules() {
  const rules = { allowedIps: [] as readonly string[] };
  let announce = () => {};
  const plane: Partial<ControlPlane> = {
    findLogin: async () => ({ verifier: proxies.verifier, disabled: false, ...rules }),
    findAccess: async (names) => new Map(names.map((name) => [name, { ...rules }])),
    onAccessChange: (listener) => {
      announce = listener;
    },
  };
  const allow = (allowedIps: readonly string[]) => {
    rules.allowedIps = allowedIps;
    announce();
  };
  return { plane, allow };
}

const refusal = { sqlState: '42501', message: expect.stringContaining('127.0.0.1 is not allowed') };

test('open sessions end, direct and pooled, idle and in the middle of a query', async () => {
  const { plane, allow } = scriptRules();
  const proxy = await proxies.start(plane, { limits: { closeMs: 500 } });
  for (const endpoint of ['ep-a', 'ep-a-pooler']) {
    const idle = await proxies.raw(proxy, {}, endpoint);
    const busy = await proxies.raw(proxy, {}, endpoint);
    busy.messages.write(encodeMessage('Q', cstring(`select pg_sleep(600), '${endpoint}'`)));
    const sleeping = () =>
      proxies.direct`select 1 from pg_stat_activity where query like ${`%600), '${endpoint}'%`} and state = 'active'
        and pid <> pg_backend_pid()`;
    await eventually(async () => expect(await sleeping()).toHaveLength(1));
    allow(['127.0.0.0/8']);
    idle.messages.write(encodeMessage('Q', cstring('select 1')));
    await eventually(async () => expect((await idle.messages.readMessage()).type).toBe('Z'));
    allow(['192.0.2.1']);
    expect(await readError(idle.messages)).toEqual(refusal);
    await closed(busy.messages.stream);
    await eventually(async () => expect(await sleeping()).toHaveLength(0));
    allow([]);
  }
});

test('a client that waits with its proof until the rules have changed does not get in', async () => {
  const { plane, allow } = scriptRules();
  const proxy = await proxies.start(plane);
  const messages = new MessageStream(await proxies.connect(proxy), 1_000_000);
  const { user, password, database } = proxies.role;
  messages.write(startupMessage(Object.entries({ user, database, options: 'endpoint=ep-a' })));
  await messages.readMessage();
  const exchange = startClientExchange();
  messages.write(saslInitialResponse(scramMechanism, exchange.first));
  const challenge = parseAuthentication((await messages.readMessage()).body);
  if (challenge.kind !== 'sasl_continue') throw new Error(`unexpected ${challenge.kind}`);
  allow(['192.0.2.1']);
  messages.write(saslResponse(await scramFinal(exchange, challenge.data, password)));
  expect(await readError(messages)).toEqual(refusal);
  expect(proxy.wakes).toEqual([]);
});

test('a change during a reading is read again, and a failed reading ends nobody', async () => {
  const ended: string[] = [];
  const answers: ((rules: AccessRules | Error) => void)[] = [];
  let announce = () => {};
  const watch = createAccessWatch(
    {
      findAccess: ([name = '']: readonly string[]) =>
        new Promise((resolve, reject) => {
          answers.push((rules) => (rules instanceof Error ? reject(rules) : resolve(new Map([[name, rules]]))));
        }),
      onAccessChange: (listener: () => void) => {
        announce = listener;
      },
    } as Partial<ControlPlane> as ControlPlane,
    silentLog,
  );
  const unwatch = watch.watch({ accessName: 'ep-a', address: '127.0.0.1', endAccess: () => ended.push('ep-a') });
  announce();
  announce();
  announce();
  expect([answers.length, watch.changes]).toEqual([1, 3]);
  answers[0]?.(new Error('the system database is away'));
  await eventually(() => expect(answers).toHaveLength(2));
  expect(ended).toEqual([]);
  answers[1]?.({ allowedIps: ['192.0.2.1'] });
  await eventually(() => expect(ended).toEqual(['ep-a']));
  await watch.check();
  expect(answers).toHaveLength(2);
  unwatch();
  watch.close();
});
