import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import { writerTo } from './straight-writer.ts';

const opened: { destroy(): void }[] = [];
afterEach(() => {
  for (const socket of opened.splice(0)) socket.destroy();
});

/** Two ends of one connection. */
async function makePair(): Promise<{ near: Socket; far: Socket }> {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const near = connect({ port: address.port, host: '127.0.0.1', allowHalfOpen: true });
  const [far]: Socket[] = await once(server, 'connection');
  server.close();
  if (far === undefined) throw new Error('no connection');
  opened.push(near, far);
  await once(near, 'connect');
  return { near, far };
}

const letters = (letter: string, count: number) => Buffer.alloc(count, letter);

describe('writerTo', () => {
  it('keeps the order among its own writes, those of the stream, and the end', async () => {
    const { near, far } = await makePair();
    const { write } = bound(near);
    const expected: Buffer[] = [];
    for (let turn = 0; turn < 200; turn++) {
      const bytes = letters(String.fromCharCode(97 + (turn % 26)), 1 + turn * 400);
      expected.push(bytes);
      if (turn % 3 === 2) near.write(bytes);
      else write(bytes);
    }
    near.end('the end');
    expect(Buffer.concat([...expected, Buffer.from('the end')]).equals(await buffer(far))).toBe(true);
  });

  it('reports when the other side does not read, and when it has read', async () => {
    const { near, far } = await makePair();
    let drains = 0;
    const writer = writerTo(near, () => {
      drains += 1;
    });
    let sent = 0;
    do sent += 65_536;
    while (writer.write(letters('x', 65_536)) && sent < 1e9);
    expect(writer.isFull).toBe(true);
    expect(drains).toBe(0);
    const received = buffer(far);
    await eventually(() => expect(drains).toBe(1));
    expect(writer.isFull).toBe(false);
    near.end();
    expect((await received).length).toBe(sent);
  });

  it('closes the socket when the other side has reset it', async () => {
    const { near, far } = await makePair();
    const errors: Error[] = [];
    near.on('error', (error) => errors.push(error));
    const { write } = bound(near);
    far.resetAndDestroy();
    await eventually(() => {
      write(letters('x', 10));
      expect(errors.map((error) => 'code' in error && error.code)).toEqual([expect.stringMatching(/ECONNRESET|EPIPE/)]);
    });
    expect(near.destroyed).toBe(true);
    expect(write(letters('x', 10))).toBe(true);
  });

  it('writes to what is no socket as to a stream', async () => {
    const stream = new PassThrough({ highWaterMark: 4 });
    const writer = writerTo(stream, () => {});
    expect(writer.write(letters('a', 2))).toBe(true);
    expect(writer.write(letters('b', 8))).toBe(false);
    expect(writer.isFull).toBe(true);
    stream.end();
    expect(String(await buffer(stream))).toBe('aabbbbbbbb');
  });
});

function bound(socket: Socket) {
  const writer = writerTo(socket, () => {});
  return { write: (bytes: Buffer) => writer.write(bytes) };
}
