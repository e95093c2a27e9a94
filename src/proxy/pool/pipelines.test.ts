/**
 * Requests that are sent before the replies to earlier ones have come, and requests that break the rules: a pooled
 * client gets the answers of a plain server, which stands behind the direct host.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  bind,
  closeStatement,
  describeStatement,
  execute,
  flush,
  parse,
  query,
  sync,
} from '../../../test/helpers/postgres-messages.ts';
import { PostgresProxies, type RawClient } from '../../../test/helpers/proxy.ts';
import { parseErrorResponse } from '../protocol/messages.ts';
import { encodeMessage } from '../protocol/wire.ts';

const proxies = new PostgresProxies();

beforeAll(() => proxies.prepare());
afterAll(() => proxies.dispose());
afterEach(() => proxies.cleanUp());

const startWith = (sessions: number) => proxies.start({ wake: async () => ({ ...proxies.compute, sessions }) });

const end = [sync, query('rollback'), query("select 'the end'")];

interface Step {
  readonly send: readonly Buffer[];
  /** How many messages of the server come before the next step. */
  readonly answers?: number;
}

async function play({ messages }: RawClient, steps: readonly Step[]): Promise<string[]> {
  const words: string[] = [];
  const next = async () => {
    const { type, body } = await messages.readMessage();
    // Reports of settings come at any time.
    if (type === 'S') return;
    if (type === 'E') words.push(parseErrorResponse(body).sqlState);
    else words.push('CDZ'.includes(type) ? `${type} ${body.toString('latin1').replaceAll('\0', '')}` : type);
  };
  for (const { send, answers } of steps) {
    messages.write(Buffer.concat(send));
    const wanted = words.length + (answers ?? 0);
    while (words.length < wanted) await next();
  }
  while (!words.some((word) => word.endsWith('the end')) || !words.at(-1)?.startsWith('Z')) await next();
  return words;
}

/** Everything but the last step waits for its answers. */
async function expectPlainAnswers(...steps: readonly Step[]): Promise<void> {
  const proxy = await startWith(1);
  const whole = [...steps, { send: end }];
  const expected = await play(await proxies.raw(proxy, {}, 'ep-a'), whole);
  const pooled = await startWith(1);
  expect(await play(await proxies.raw(pooled), whole)).toEqual(expected);
}

const failing = execute('missing');
const latin1 = query("set client_encoding = 'latin1'");
const utf8 = query("set client_encoding = 'utf8'");
const discardAll = [parse('', 'discard all'), bind(''), execute()];
/** Another message of the same frame. */
const withBody = (message: Buffer, change: (body: Buffer) => Buffer) =>
  encodeMessage(String.fromCharCode(message[0] ?? 0), change(Buffer.from(message.subarray(5))));
const invalid = (message: Buffer, text: string) =>
  withBody(message, (body) => Buffer.from(body.toString('latin1').replace(text, '\xfb\xfb'), 'latin1'));

describe('a pooled client gets the answers of a plain server', () => {
  it.each<[string, readonly Buffer[]]>([
    ['to a name that was prepared behind DISCARD ALL', [...discardAll, parse('a', 'select 1'), parse('a', 'select 2')]],
    [
      'to a use behind DISCARD ALL of a name before it',
      [parse('a', 'select 1'), sync, query('discard all'), bind('a')],
    ],
    [
      'to a Close behind DISCARD ALL that is skipped',
      [parse('a', 'select 1'), sync, ...discardAll, failing, closeStatement('a'), sync, bind('a'), execute()],
    ],
    ['to the unnamed statement of a skipped Parse', [failing, parse('', 'select 1'), sync, bind(''), execute()]],
    [
      'to the unnamed statement before a skipped one',
      [parse('', 'select 1'), sync, failing, parse('', 'select 2'), sync, bind(''), execute()],
    ],
    [
      'to the unnamed statement before a refused one',
      [parse('', 'select 1'), sync, parse('', 'selec 2'), sync, bind(''), execute()],
    ],
    [
      'to the unnamed statement before a query that is too long for its text',
      [
        parse('', 'select 1'),
        sync,
        withBody(query('begin'), (body) => Buffer.concat([body, body])),
        bind(''),
        execute(),
      ],
    ],
    [
      'to the unnamed statement before a query that is no text',
      [parse('', 'select 1'), sync, invalid(query('select a'), 'a'), bind(''), execute()],
    ],
    [
      'to the unnamed statement before a skipped query',
      [parse('', 'select 1'), sync, failing, query('select 2'), sync, bind(''), execute()],
    ],
    [
      'to the unnamed statement before its Close',
      [parse('', 'select 1'), bind(''), closeStatement(''), sync, bind(''), execute()],
    ],
    [
      'to the unnamed statement before a skipped Close',
      [parse('', 'select 1'), sync, failing, closeStatement(''), sync, bind(''), execute()],
    ],
    ['to a name whose Parse was skipped', [failing, parse('a', 'select 1'), sync, bind('a'), describeStatement('a')]],
    [
      'to a name whose Close was skipped',
      [parse('a', 'select 1'), sync, failing, closeStatement('a'), sync, bind('a'), execute()],
    ],
    [
      'to a name whose Parse was skipped, and later its Close',
      [failing, parse('a', 'select 1'), sync, failing, closeStatement('a'), sync, bind('a'), execute()],
    ],
    [
      'to a new text for a name whose Close was skipped',
      [parse('a', 'select 1'), sync, failing, closeStatement('a'), sync, parse('a', 'select 2')],
    ],
    [
      'to a second text for a name in a failed transaction',
      [parse('a', 'select 1'), sync, query('begin'), query('select 1/0'), parse('a', 'rollback')],
    ],
    ['to a second text for a name that is wrong itself', [parse('a', 'select 1'), sync, parse('a', 'selec 2')]],
    ['to one name in two encodings', [parse('ä', 'select 1'), latin1, parse('ä', 'select 2'), utf8, bind('ä')]],
    ['to a name that is another one in this encoding', [parse('ä', 'select 1'), latin1, bind('ä'), execute()]],
    ['to DEALLOCATE of a name beyond ASCII', [parse('ä', 'select 1'), sync, query('DEALLOCATE ä'), bind('ä')]],
    ['to a name that is no text', [invalid(parse('name', 'select 1'), 'name')]],
    [
      'to two names that are equal in what Postgres keeps',
      ['x', 'y'].map((at) => parse('n'.repeat(63) + at, 'select 1')),
    ],
    ['to a Parse whose name has no end', [withBody(parse('a', 'select 1'), (body) => body.subarray(0, 1))]],
    ['to a Bind whose names have no end', [withBody(bind('a'), (body) => body.subarray(0, 1))]],
    ['to a Close whose name has no end', [withBody(closeStatement('ab'), (body) => body.subarray(0, 2))]],
    ['to a Close without a body', [withBody(closeStatement('a'), () => Buffer.alloc(0))]],
    ['to a Describe without a body', [withBody(describeStatement('a'), () => Buffer.alloc(0))]],
    ['to a Flush with a body', [withBody(flush, () => Buffer.from('x')), parse('a', 'select 1')]],
  ])('%s', async (_, send) => {
    await expectPlainAnswers({ send });
  });

  it('to a name that was prepared behind DISCARD ALL, when the reply to it comes before the next request', async () => {
    const prepared = [...discardAll, parse('a', 'select 1'), flush];
    await expectPlainAnswers({ send: prepared, answers: 4 }, { send: [bind('a'), execute()] });
  });

  it('to the unnamed statement of a Parse that was skipped in an earlier turn', async () => {
    await expectPlainAnswers(
      { send: [failing, parse('', 'select 1'), sync], answers: 2 },
      { send: [bind(''), execute()] },
    );
  });

  it('to the unnamed statement that was closed in an earlier turn', async () => {
    const closed = [parse('', 'select 1'), sync, closeStatement(''), sync];
    await expectPlainAnswers({ send: closed, answers: 4 }, { send: [bind(''), execute()] });
  });

  it('to a Close that lost its last letter, and leaves the name that is left alone', async () => {
    const spoilt = withBody(closeStatement('ab'), (body) => body.subarray(0, 3));
    const both = [parse('a', 'select 1'), parse('ab', 'select 2'), sync];
    await expectPlainAnswers({ send: both, answers: 3 }, { send: [spoilt, sync, bind('a'), execute()] });
  });
});

it('a client whose Parse was skipped never uses the unnamed statement of another client', async () => {
  const proxy = await startWith(1);
  const [one, other] = [await proxies.raw(proxy), await proxies.raw(proxy)];
  one.messages.write(Buffer.concat([parse('', "select 'of one'"), sync]));
  for (const type of ['1', 'Z']) expect((await one.messages.readMessage()).type).toBe(type);
  const skipped = [failing, parse('', 'select 1'), sync, bind(''), execute(), ...end];
  expect((await play(other, [{ send: skipped }])).slice(0, 4)).toEqual(['34000', 'Z I', '26000', 'Z I']);
});

it('a client binds its unnamed statement again after others have had the server', async () => {
  const proxy = await startWith(1);
  const [one, other] = [await proxies.raw(proxy), await proxies.raw(proxy)];
  one.messages.write(Buffer.concat([parse('', "select 'of one'"), bind(''), sync]));
  for (const type of ['1', '2', 'Z']) expect((await one.messages.readMessage()).type).toBe(type);
  await play(other, [{ send: [parse('', "select 'of other'"), bind(''), execute(), ...end] }]);
  expect((await play(one, [{ send: [bind(''), execute(), ...end] }])).slice(0, 2)).toEqual(['2', 'D \x01\x06of one']);
});

it('a text beyond ASCII is another one for a client with another encoding', async () => {
  const proxy = await startWith(1);
  const [one, other] = [await proxies.raw(proxy), await proxies.raw(proxy, { client_encoding: 'latin1' })];
  const prepare = { send: [parse('a', "select length('ä')"), sync], answers: 2 };
  const use = { send: [bind('a'), execute(), ...end] };
  await expect(play(one, [prepare, { send: end }])).resolves.toContain('1');
  await expect(play(other, [prepare, { send: end }])).resolves.toContain('1');
  expect((await play(one, [use])).slice(0, 2)).toEqual(['2', 'D \x01\x011']);
  expect((await play(other, [use])).slice(0, 2)).toEqual(['2', 'D \x01\x012']);
});
