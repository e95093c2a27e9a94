/** Clients that are shown a link, message by message. */
import { once } from 'node:events';
import { connect as connectTls } from 'node:tls';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { letRun } from '../../../test/helpers/eventually.ts';
import { readError, TestProxies } from '../../../test/helpers/proxy.ts';
import { CatnapError } from '../../lib/errors.ts';
import type { LinkRequest, ShownLink } from '../kit/control-plane.ts';
import type { RunningProxy } from '../listener.ts';
import { MessageStream } from '../protocol/message-stream.ts';
import { parseAuthentication, parseErrorResponse, startupMessage } from '../protocol/messages.ts';

const proxies = new TestProxies();
beforeAll(() => proxies.prepare());
afterEach(() => proxies.cleanUp());
afterAll(() => proxies.dispose());

const asked: LinkRequest[] = [];
const link = 'http://localhost/psql#t';

const start = (wait: ShownLink['wait'], seconds = 60) =>
  proxies.start(
    {
      showLink: async (request) => {
        asked.push(request);
        return { link, seconds, wait };
      },
    },
    { limits: { authenticationMs: 1_000 } },
  );

async function connect(proxy: RunningProxy, servername: string | null, parameters: Record<string, string>) {
  const plain = await proxies.connect(proxy);
  if (servername === null) return begin(new MessageStream(plain, 100_000), parameters);
  const socket = connectTls({ socket: plain, servername, ALPNProtocols: ['postgresql'], rejectUnauthorized: false });
  socket.on('error', () => {});
  await once(socket, 'secureConnect');
  return begin(new MessageStream(socket, 100_000), parameters);
}

function begin(messages: MessageStream, parameters: Record<string, string>): MessageStream {
  messages.write(startupMessage(Object.entries({ user: 'casey', ...parameters })));
  return messages;
}

const nobody = () => new Promise<never>(() => {});
const psql = { application_name: 'psql' };

it('begins with AuthenticationOk and the link, and waits longer than a password may take', async () => {
  let refuse = (_reason: Error) => {};
  const decided = new Promise<never>((_resolve, reject) => {
    refuse = reject;
  });
  const proxy = await start(() => decided);
  const messages = await connect(proxy, 'localhost', psql);
  expect(parseAuthentication((await messages.readMessage()).body)).toEqual({ kind: 'ok' });
  const notice = await messages.readMessage();
  expect(notice.type).toBe('N');
  expect(parseErrorResponse(notice.body).message).toContain(`within 60 seconds:\n\n    ${link}\n`);
  expect(asked.at(-1)).toEqual({ address: '127.0.0.1', role: 'casey', database: 'casey', applicationName: 'psql' });
  const ended = readError(messages);
  await letRun(1_300);
  refuse(new CatnapError('forbidden', 'refused by a person'));
  expect(await ended).toEqual({ sqlState: '42501', message: 'refused by a person' });
  expect(proxy.wakes).toEqual([]);
});

it('gives up when the link is too old, even if the control plane never answers', async () => {
  const messages = await connect(await start(nobody, 0), 'localhost', psql);
  expect(await readError(messages)).toMatchObject({ sqlState: '28000', message: 'Authentication timed out' });
});

it('tells the control plane that the client has left', async () => {
  let left = (_reason: unknown) => {};
  const gone = new Promise((resolve) => {
    left = resolve;
  });
  const proxy = await start((signal) => {
    signal.addEventListener('abort', () => left(signal.reason));
    return nobody();
  });
  const messages = await connect(proxy, 'pg.localhost', { database: 'shop' });
  await messages.readMessage();
  expect(asked.at(-1)).toMatchObject({ database: 'shop', applicationName: '' });
  messages.stream.destroy();
  expect(await gone).toMatchObject({ name: 'PeerGone' });
});

it.each([
  ['without TLS', null, psql],
  ['that is not psql', 'localhost', { application_name: 'my app' }],
])('asks a client %s for a password that names its endpoint', async (_which, servername, parameters) => {
  const messages = await connect(await start(nobody), servername, parameters);
  expect(parseAuthentication((await messages.readMessage()).body)).toEqual({ kind: 'other', code: 3 });
});

it('asks a client that names its endpoint for the password of its role', async () => {
  const messages = await connect(await start(nobody), 'localhost', { ...psql, options: 'endpoint=ep-a' });
  expect(parseAuthentication((await messages.readMessage()).body).kind).toBe('sasl');
});
