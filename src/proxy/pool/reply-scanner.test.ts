/** Replies in arbitrary chunks: what the client gets, what is hidden from it, and when the server is free. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  bindComplete,
  closeComplete,
  commandComplete,
  copyInResponse,
  cutAt,
  dataRow,
  errorMessage,
  parseComplete,
  readyForQuery,
} from '../../../test/helpers/postgres-messages.ts';
import { ProtocolError } from '../protocol/wire.ts';
import { type ReplyEvents, ReplyScanner } from './reply-scanner.ts';
import { hidden, local, requestKind } from './request-queue.ts';

const { parse, bind, execute, close, sync, query, copyEnd } = requestKind;
const failed = errorMessage('ERROR', '22012');
const ready = readyForQuery();

/** Requests, what the server sends for them, and how much of it the client gets. */
interface Exchange {
  readonly requests: readonly number[];
  readonly sent: Buffer;
  readonly shown: Buffer;
}

function shownInFull(requests: readonly number[], ...messages: Buffer[]): Exchange {
  const sent = Buffer.concat(messages);
  return { requests, sent, shown: sent };
}

const exchanges: fc.Arbitrary<Exchange> = fc.oneof(
  fc.nat({ max: 300 }).map((size) => {
    return shownInFull([query], dataRow(size), dataRow(0), commandComplete('SELECT 2'), ready);
  }),
  fc.constant(shownInFull([query], failed, ready)),
  fc.constant({
    requests: [query | hidden],
    sent: Buffer.concat([commandComplete('SET'), ready]),
    shown: Buffer.alloc(0),
  }),
  fc.nat({ max: 300 }).map((size) => {
    const shown = Buffer.concat([bindComplete, dataRow(size), commandComplete('SELECT 1'), ready]);
    return { requests: [parse | hidden, bind, execute, sync], sent: Buffer.concat([parseComplete, shown]), shown };
  }),
  fc.constant({
    requests: [parse, bind, execute, close | local, sync],
    sent: Buffer.concat([parseComplete, bindComplete, commandComplete('INSERT 0 1'), ready]),
    shown: Buffer.concat([parseComplete, bindComplete, commandComplete('INSERT 0 1'), closeComplete, ready]),
  }),
  // After an error nothing up to the Sync is replied to, neither by the server nor by the proxy.
  fc.constant(shownInFull([bind, execute, close | local, parse, sync], failed, ready)),
);

function scanner(events: Partial<ReplyEvents> = {}): { replies: ReplyScanner; shown: () => Buffer } {
  const parts: Buffer[] = [];
  const replies = new ReplyScanner({
    onBytes: (bytes) => parts.push(Buffer.from(bytes)),
    onParameter: () => {},
    onCommand: () => {},
    onFatal: () => false,
    onError: () => {},
    ...events,
  });
  return { replies, shown: () => Buffer.concat(parts) };
}

describe('replies', () => {
  it('are shown or hidden the same way, however they are cut and pipelined', () => {
    const cuts = fc.array(fc.nat({ max: 1_500 }), { maxLength: 40 });
    fc.assert(
      fc.property(fc.array(exchanges, { maxLength: 12 }), cuts, (list, offsets) => {
        const { replies, shown } = scanner();
        for (const { requests } of list) for (const request of requests) replies.expect(request);
        replies.sendLocalReplies();
        for (const chunk of cutAt(Buffer.concat(list.map(({ sent }) => sent)), offsets)) replies.feed(chunk);
        expect(shown()).toEqual(Buffer.concat(list.map((exchange) => exchange.shown)));
        expect(replies.isIdle).toBe(true);
      }),
    );
  });

  it('do not free a server that is in a transaction or in the middle of a reply', () => {
    const { replies } = scanner();
    replies.expect(query);
    replies.feed(readyForQuery('T'));
    expect(replies.isIdle).toBe(false);
    replies.expect(query);
    const reply = Buffer.concat([commandComplete('COMMIT'), ready]);
    for (const byte of reply.subarray(0, -1)) {
      replies.feed(Buffer.from([byte]));
      expect(replies.isIdle).toBe(false);
    }
    replies.feed(reply.subarray(-1));
    expect(replies.isIdle).toBe(true);
    replies.expect(parse);
    replies.feed(parseComplete);
    expect(replies.isIdle).toBe(false);
  });

  it('to a COPY in the extended protocol do not include one to a Sync that the server has ignored', () => {
    const { replies } = scanner();
    for (const request of [bind, execute, sync]) replies.expect(request);
    replies.feed(Buffer.concat([bindComplete, copyInResponse]));
    replies.expect(sync);
    replies.expect(copyEnd);
    replies.expect(sync);
    replies.feed(commandComplete('COPY 1'));
    expect(replies.isIdle).toBe(false);
    replies.feed(ready);
    expect(replies.isIdle).toBe(true);
  });

  it('to a COPY that was sent whole before it began do not include it either', () => {
    const { replies } = scanner();
    for (const request of [bind, execute, sync, copyEnd, sync]) replies.expect(request);
    replies.feed(Buffer.concat([bindComplete, copyInResponse, commandComplete('COPY 1')]));
    expect(replies.isIdle).toBe(false);
    replies.feed(ready);
    expect(replies.isIdle).toBe(true);
  });

  it('of the proxy itself do not count as the end of a COPY', () => {
    const { replies } = scanner();
    for (const request of [bind, execute, sync, close | local, sync]) replies.expect(request);
    replies.feed(Buffer.concat([bindComplete, copyInResponse]));
    expect(replies.isReadingCopy).toBe(true);
    replies.expect(close | local);
    expect(replies.isReadingCopy).toBe(true);
    replies.expect(parse);
    expect(replies.isReadingCopy).toBe(false);
  });

  it.each([
    ['before', copyInResponse, Buffer.alloc(0)],
    ['after', Buffer.alloc(0), copyInResponse],
  ])('to a COPY that fails include those to Syncs behind other requests, sent %s it began', (_, first, then) => {
    const { replies, shown } = scanner();
    for (const request of [bind, execute]) replies.expect(request);
    replies.feed(Buffer.concat([bindComplete, first]));
    for (const request of [parse, query, sync, sync, parse, sync]) replies.expect(request);
    const rest = Buffer.concat([then, failed, ready, ready, parseComplete]);
    replies.feed(rest);
    expect(replies.isIdle).toBe(false);
    replies.feed(ready);
    expect(replies.isIdle).toBe(true);
    expect(shown()).toEqual(Buffer.concat([bindComplete, first, rest, ready]));
  });

  it('undo the changes of requests that failed or were skipped', () => {
    const { replies } = scanner();
    const undone: string[] = [];
    const done: string[] = [];
    const change = (name: string) => ({
      done: () => void done.push(name),
      undo: (how: string) => void undone.push(`${name} ${how}`),
      redo: () => {},
    });
    for (const name of ['first', 'second', 'third']) replies.expect(parse, change(name));
    replies.feed(parseComplete);
    replies.feed(failed);
    expect(done).toEqual(['first']);
    expect(undone).toEqual(['third skipped', 'second refused']);
    replies.expect(parse, change('fourth'));
    expect(undone).toEqual(['third skipped', 'second refused', 'fourth skipped']);
    replies.expect(sync);
    replies.feed(ready);
    expect(replies.isIdle).toBe(true);
  });

  it('that end the connection are reported as fatal', () => {
    let fatal = 0;
    const { replies, shown } = scanner({
      onFatal: () => {
        fatal += 1;
        return true;
      },
    });
    replies.feed(errorMessage('FATAL', '57P01'));
    expect(fatal).toBe(1);
    expect(shown()).toHaveLength(0);
  });

  it('to no request, and malformed ones, are protocol errors', () => {
    expect(() => scanner().replies.feed(parseComplete)).toThrow(ProtocolError);
    expect(() => scanner().replies.feed(Buffer.from([0x44, 0, 0, 0, 3]))).toThrow(ProtocolError);
  });
});
