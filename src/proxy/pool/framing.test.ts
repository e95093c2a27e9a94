/** The framing of pooled sessions under arbitrary chunking: what passes, what is hidden, and when a server is free. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CatnapError } from '../../lib/errors.ts';
import { errorResponse } from '../protocol/messages.ts';
import { cstring, encodeMessage, int32, ProtocolError } from '../protocol/wire.ts';
import { ReplyScanner } from './reply-scanner.ts';
import { hidden, local, requestKind } from './request-queue.ts';
import { RequestTranslator } from './request-translator.ts';
import { ClientStatements, ServerStatements, StatementTable } from './statements.ts';

/** Cuts at the given places, which may repeat and exceed the end. */
function cut(whole: Buffer, places: readonly number[]): Buffer[] {
  const edges = [0, ...places.map((place) => Math.min(place, whole.length)).sort((a, b) => a - b), whole.length];
  return edges.slice(1).map((edge, i) => whole.subarray(edges[i], edge));
}
const places = fc.array(fc.nat({ max: 1_500 }), { maxLength: 40 });

const ready = (status: string) => encodeMessage('Z', Buffer.from(status));
const complete = (tag: string) => encodeMessage('C', cstring(tag));
const row = (size: number) => encodeMessage('D', Buffer.alloc(size, 'x'));
const failed = encodeMessage('E', ...['SERROR', 'VERROR', 'C22012', 'Mno'].map(cstring), Buffer.from([0]));
const parsed = encodeMessage('1');
const bound = encodeMessage('2');
const closed = encodeMessage('3');
const nothing = Buffer.alloc(0);

/** Things requestKind, what the server says to them, and what of that the client sees. */
interface Exchange {
  readonly kinds: readonly number[];
  readonly says: Buffer;
  readonly sees: Buffer;
}

function openly(kinds: readonly number[], ...messages: Buffer[]): Exchange {
  const says = Buffer.concat(messages);
  return { kinds, says, sees: says };
}

const exchanges: fc.Arbitrary<Exchange> = fc.oneof(
  fc.nat({ max: 300 }).map((size) => openly([requestKind.query], row(size), row(0), complete('SELECT 2'), ready('I'))),
  fc.constant(openly([requestKind.query], failed, ready('I'))),
  fc.constant({
    kinds: [requestKind.query | hidden],
    says: Buffer.concat([complete('SET'), ready('I')]),
    sees: nothing,
  }),
  fc.nat({ max: 300 }).map((size) => {
    const sees = Buffer.concat([bound, row(size), complete('SELECT 1'), ready('I')]);
    const kinds = [requestKind.parse | hidden, requestKind.bind, requestKind.execute, requestKind.sync];
    return { kinds, says: Buffer.concat([parsed, sees]), sees };
  }),
  fc.constant({
    kinds: [
      requestKind.parse | local,
      requestKind.bind,
      requestKind.execute,
      requestKind.close | local,
      requestKind.sync,
    ],
    says: Buffer.concat([bound, complete('INSERT 0 1'), ready('I')]),
    sees: Buffer.concat([parsed, bound, complete('INSERT 0 1'), closed, ready('I')]),
  }),
  // After an error nothing up to the Sync is answered, neither by the server nor by us.
  fc.constant(
    openly(
      [requestKind.bind, requestKind.execute, requestKind.close | local, requestKind.parse, requestKind.sync],
      failed,
      ready('I'),
    ),
  ),
);

function scanner(): { replies: ReplyScanner; output: () => Buffer } {
  const parts: Buffer[] = [];
  const replies = new ReplyScanner({
    onBytes: (bytes) => parts.push(Buffer.from(bytes)),
    onParameter: () => {},
    onCommand: () => {},
    onFatal: () => false,
    onError: () => {},
  });
  return { replies, output: () => Buffer.concat(parts) };
}

describe('replies', () => {
  it('show the same, however they are cut and pipelined', () => {
    fc.assert(
      fc.property(fc.array(exchanges, { maxLength: 12 }), places, (list, edges) => {
        const { replies, output } = scanner();
        for (const { kinds } of list) for (const kind of kinds) replies.expect(kind);
        replies.sendLocalReplies();
        for (const chunk of cut(Buffer.concat(list.map(({ says }) => says)), edges)) replies.feed(chunk);
        expect(output()).toEqual(Buffer.concat(list.map(({ sees }) => sees)));
        expect(replies.isIdle).toBe(true);
      }),
    );
  });

  it('do not free a server that is in a transaction, or in the middle of an answer', () => {
    const { replies } = scanner();
    replies.expect(requestKind.query);
    replies.feed(ready('T'));
    expect(replies.isIdle).toBe(false);
    replies.expect(requestKind.query);
    const answer = Buffer.concat([complete('COMMIT'), ready('I')]);
    for (const byte of answer.subarray(0, -1)) {
      replies.feed(Buffer.from([byte]));
      expect(replies.isIdle).toBe(false);
    }
    replies.feed(answer.subarray(-1));
    expect(replies.isIdle).toBe(true);
    replies.expect(requestKind.parse);
    replies.feed(parsed);
    expect(replies.isIdle).toBe(false);
  });

  it('of a COPY in the extended protocol leave out the Sync that the server has read over', () => {
    const { replies } = scanner();
    for (const kind of [requestKind.bind, requestKind.execute, requestKind.sync]) replies.expect(kind);
    replies.feed(Buffer.concat([bound, encodeMessage('G', Buffer.from([0, 0, 0]))]));
    replies.expect(requestKind.sync);
    replies.expect(requestKind.copyEnd);
    replies.expect(requestKind.sync);
    replies.feed(complete('COPY 1'));
    expect(replies.isIdle).toBe(false);
    replies.feed(ready('I'));
    expect(replies.isIdle).toBe(true);
  });

  it('undo what failed and what was never looked at', () => {
    const { replies } = scanner();
    const undone: string[] = [];
    const note = (name: string) => ({ undo: () => undone.push(name) });
    for (const name of ['first', 'second', 'third']) replies.expect(requestKind.parse, note(name));
    replies.feed(parsed);
    replies.feed(failed);
    expect(undone).toEqual(['third', 'second']);
    replies.expect(requestKind.parse, note('ignored'));
    expect(undone).toEqual(['third', 'second', 'ignored']);
    replies.expect(requestKind.sync);
    replies.feed(ready('I'));
    expect(replies.isIdle).toBe(true);
  });

  it('that end the connection are told apart', () => {
    let fatal = 0;
    const replies = new ReplyScanner({
      ...{ onBytes: () => {}, onParameter: () => {}, onCommand: () => {}, onError: () => {} },
      onFatal: () => {
        fatal += 1;
        return true;
      },
    });
    replies.feed(errorResponse({ sqlState: '57P01', message: 'bye' }));
    expect(fatal).toBe(1);
  });

  it('of a server that says what it was not requestKind are refused', () => {
    expect(() => scanner().replies.feed(parsed)).toThrow(ProtocolError);
    expect(() => scanner().replies.feed(Buffer.from([0x44, 0, 0, 0, 3]))).toThrow(ProtocolError);
  });
});

const bind = (name: string, value: string) =>
  encodeMessage('B', cstring('p'), cstring(name), Buffer.alloc(4), int32(value.length), Buffer.from(value));
const requests = fc.oneof(
  fc.nat({ max: 12_000 }).map((size) => encodeMessage('Q', cstring('q'.repeat(size)))),
  fc.constantFrom('a', 'b', 'c').map((name) => encodeMessage('P', cstring(name), cstring(`select ${name}`), int32(0))),
  fc
    .tuple(fc.constantFrom('a', 'b', 'c', 'd', ''), fc.nat({ max: 12_000 }))
    .map(([name, size]) => bind(name, 'v'.repeat(size))),
  fc.constantFrom('a', 'b').map((name) => encodeMessage('D', Buffer.from('S'), cstring(name))),
  fc.constantFrom('a', 'b').map((name) => encodeMessage('C', Buffer.from('S'), cstring(name))),
  fc.constant(encodeMessage('P', cstring(''), cstring('select 1'), int32(0))),
  fc.constant(encodeMessage('E', cstring('p'), int32(0))),
  fc.constant(encodeMessage('S')),
);

function translator() {
  const table = new StatementTable();
  const kinds: number[] = [];
  const { replies } = scanner();
  const expectKind = replies.expect.bind(replies);
  replies.expect = (kind, note) => {
    kinds.push(kind);
    expectKind(kind, note);
  };
  const target = { replies, statements: new ServerStatements(table, 2), turn: 1 };
  const requestTranslator = new RequestTranslator(new ClientStatements(table));
  const pass = (chunk: Buffer) => Buffer.concat(requestTranslator.translate(chunk, target));
  return { pass, kinds, requestTranslator };
}

describe('requests', () => {
  it('become the same for the server, however they are cut', () => {
    const edges = fc.array(fc.nat({ max: 60_000 }), { maxLength: 40 });
    fc.assert(
      fc.property(fc.array(requests, { maxLength: 15 }), edges, (list, cuts) => {
        const whole = Buffer.concat(list);
        const [one, pieces] = [translator(), translator()];
        const expected = Buffer.concat(list.map((message) => one.pass(message)));
        expect(Buffer.concat(cut(whole, cuts).map((chunk) => pieces.pass(chunk)))).toEqual(expected);
        expect(pieces.kinds).toEqual(one.kinds);
        expect(pieces.requestTranslator.isMidMessage).toBe(false);
      }),
    );
  });

  it('that are garbage are met with a ProtocolError or with patience', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), places, (garbage, edges) => {
        const { pass } = translator();
        try {
          for (const chunk of cut(Buffer.from(garbage), edges)) pass(chunk);
        } catch (thrown) {
          // A Parse that announces more than we would keep is too large.
          expect(thrown instanceof ProtocolError || thrown instanceof CatnapError).toBe(true);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('never use the unnamed statement that another client has left', () => {
    const { pass } = translator();
    expect(pass(bind('', 'x')).toString('latin1')).toContain('unnamed');
    pass(encodeMessage('P', cstring(''), cstring('select 1'), int32(0)));
    expect(pass(bind('', 'x')).toString('latin1')).not.toContain('unnamed');
  });

  it('of a COPY that has failed go nowhere', () => {
    const { requestTranslator } = translator();
    const data = encodeMessage('d', Buffer.alloc(100));
    const query = encodeMessage('Q', cstring('select 1'));
    const rest = Buffer.concat([data, data, encodeMessage('c'), query]);
    expect(requestTranslator.withoutStrayCopy(rest.subarray(0, 50))).toHaveLength(0);
    expect(requestTranslator.withoutStrayCopy(rest.subarray(50))).toEqual(query);
  });
});
