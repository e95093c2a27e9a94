/** Requests in arbitrary chunks: what the server gets for them, and which replies are expected. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  bind,
  closeStatement,
  copyData,
  copyDone,
  cutAt,
  describeStatement,
  errorMessage,
  execute,
  flush,
  parse,
  query,
  sync,
} from '../../../test/helpers/postgres-messages.ts';
import { CatnapError } from '../../lib/errors.ts';
import { ProtocolError } from '../protocol/wire.ts';
import { ReplyScanner } from './reply-scanner.ts';
import { RequestTranslator } from './request-translator.ts';
import { ClientStatements, ServerStatements, StatementTable } from './statements.ts';

const requests = fc.oneof(
  fc.nat({ max: 12_000 }).map((size) => query('q'.repeat(size))),
  fc.constantFrom('a', 'b', 'c').map((name) => parse(name, `select ${name}`)),
  fc
    .tuple(fc.constantFrom('a', 'b', 'c', 'd', ''), fc.nat({ max: 12_000 }))
    .map(([name, size]) => bind(name, ['v'.repeat(size)], 'p')),
  fc.constantFrom('a', 'b').map((name) => describeStatement(name)),
  fc.constantFrom('a', 'b').map((name) => closeStatement(name)),
  fc.constant(parse('', 'select 1')),
  fc.constant(execute('p')),
  fc.constant(sync),
);

function translator() {
  const table = new StatementTable();
  const replies = new ReplyScanner({
    onBytes: () => {},
    onParameter: () => {},
    onCommand: () => {},
    onFatal: () => false,
    onError: () => {},
  });
  const expected: number[] = [];
  const expectReply = replies.expect.bind(replies);
  replies.expect = (request, change) => {
    expected.push(request);
    expectReply(request, change);
  };
  const target = { replies, statements: new ServerStatements(table, 2), turn: 1 };
  const requestTranslator = new RequestTranslator(new ClientStatements(table), { values: ['UTF8'] });
  const pass = (chunk: Buffer) => Buffer.concat(requestTranslator.translate(chunk, target));
  return { pass, expected, requestTranslator, replies };
}

describe('requests', () => {
  it('become the same for the server, however they are cut', () => {
    const cuts = fc.array(fc.nat({ max: 60_000 }), { maxLength: 40 });
    fc.assert(
      fc.property(fc.array(requests, { maxLength: 15 }), cuts, (list, offsets) => {
        const inMessages = translator();
        const inChunks = translator();
        const translated = Buffer.concat(list.map((message) => inMessages.pass(message)));
        const chunks = cutAt(Buffer.concat(list), offsets);
        expect(Buffer.concat(chunks.map((chunk) => inChunks.pass(chunk)))).toEqual(translated);
        expect(inChunks.expected).toEqual(inMessages.expected);
        const { heldBytes, isMidMessage } = inChunks.requestTranslator;
        expect(heldBytes).toBe(inMessages.requestTranslator.heldBytes);
        expect(isMidMessage).toBe(heldBytes > 0);
      }),
    );
  });

  it('that are garbage cause a protocol error or wait for the rest of a message', () => {
    const cuts = fc.array(fc.nat({ max: 1_500 }), { maxLength: 40 });
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), cuts, (garbage, offsets) => {
        const { pass } = translator();
        try {
          for (const chunk of cutAt(Buffer.from(garbage), offsets)) pass(chunk);
        } catch (thrown) {
          // A Parse that announces more bytes than are kept for a client is too large.
          expect(thrown instanceof ProtocolError || thrown instanceof CatnapError).toBe(true);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('wait if they prepare a name again before the replies show whether the client has it', () => {
    const { pass, requestTranslator, replies } = translator();
    pass(parse('a', 'select 1'));
    const again = parse('a', 'select 2');
    expect(pass(again)).toEqual(flush);
    expect(pass(sync)).toHaveLength(0);
    expect(requestTranslator.heldBytes).toBe(again.length + sync.length);
    replies.feed(errorMessage('ERROR', '42601'));
    // The server skips it: the Sync follows it.
    const sent = pass(Buffer.alloc(0)).toString('latin1');
    expect(sent).toContain('select 2');
    expect(sent.endsWith(sync.toString('latin1'))).toBe(true);
    expect(requestTranslator.heldBytes).toBe(0);
  });

  it('never use the unnamed statement of another client', () => {
    const { pass } = translator();
    expect(pass(bind('', ['x'])).toString('latin1')).toContain('unnamed');
    pass(parse('', 'select 1'));
    expect(pass(bind('', ['x'])).toString('latin1')).not.toContain('unnamed');
  });

  it('that belong to a COPY which has already failed are dropped', () => {
    const { requestTranslator } = translator();
    const rest = Buffer.concat([copyData(100), copyData(100), copyDone, query('select 1')]);
    expect(requestTranslator.withoutStrayCopy(rest.subarray(0, 50))).toHaveLength(0);
    expect(requestTranslator.withoutStrayCopy(rest.subarray(50))).toEqual(query('select 1'));
  });
});
