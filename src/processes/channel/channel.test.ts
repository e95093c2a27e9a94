import { type ChildProcess, fork } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import { remoteHost, serveHost } from '../../compute/local/channel/remote.ts';
import type { ChannelEnd } from './channel.ts';
import { driverChannel } from './driver-channel.ts';
import { openChildEnd, openParentEnd } from './messages.ts';

/** One end of a pair that transmits only what JSON can hold, as the real channel does. */
class End extends EventEmitter implements ChannelEnd {
  connected = true;
  peer: End | null = null;

  send(message: object, callback?: (error: Error | null) => void): boolean {
    const copy: unknown = JSON.parse(JSON.stringify(message));
    setImmediate(() => this.peer?.emit('message', copy));
    callback?.(null);
    return true;
  }

  disconnect(): void {
    this.connected = false;
    this.emit('disconnect');
  }
}

function pair() {
  const [parent, child] = [new End(), new End()];
  parent.peer = child;
  child.peer = parent;
  return { parent, child };
}

describe('the channel between the parent and a child', () => {
  test('brings each message to the listeners of its kind, in order', async () => {
    const { parent, child } = pair();
    const seen: unknown[] = [];
    const childEnd = openChildEnd(child);
    childEnd.on('stop', (body) => seen.push(['stop', body]));
    childEnd.on('permits', (body) => seen.push(['permits', body]));
    childEnd.on('permits', (body) => seen.push(['again', body]));
    const parentEnd = openParentEnd(parent);
    parentEnd.on('failed', (reason) => seen.push(['failed', reason]));
    parentEnd.send('permits', { count: 1 });
    parentEnd.send('host', 'nobody listens');
    parentEnd.send('stop', null);
    childEnd.send('failed', 'a port is taken');
    await eventually(() =>
      expect(seen).toEqual([
        ['permits', { count: 1 }],
        ['again', { count: 1 }],
        ['stop', null],
        ['failed', 'a port is taken'],
      ]),
    );
  });

  test('drops what is no envelope, and kinds that do not belong to this end', async () => {
    const { parent } = pair();
    const end = openParentEnd(parent);
    const seen: unknown[] = [];
    for (const kind of ['ready', 'failed', 'permits', 'host'] as const) end.on(kind, (body) => seen.push([kind, body]));
    const strange = [
      null,
      'ready',
      7,
      [],
      {},
      { kind: 'ready' },
      { body: null },
      { kind: 7, body: null },
      { kind: 'init', body: null },
      { kind: 'stop', body: null },
      { kind: '__proto__', body: null },
      { kind: 'constructor', body: null },
      { hostCall: 1, method: 'list', args: [] },
    ];
    for (const message of strange) parent.emit('message', message);
    expect(seen).toEqual([]);
    parent.emit('message', { kind: 'ready', body: null });
    expect(seen).toEqual([['ready', null]]);
  });

  test('says that a message could not be sent only to a sender that wants to know', () => {
    const { parent } = pair();
    const end = openParentEnd(parent);
    let closed = 0;
    end.onClose(() => closed++);
    expect(end.isOpen).toBe(true);
    parent.disconnect();
    expect([end.isOpen, closed]).toEqual([false, 1]);
    end.send('stop', null);
    const failures: Error[] = [];
    end.send('stop', null, (error) => failures.push(error));
    expect(failures.map(({ message }) => message)).toEqual(['the other process is gone']);
  });

  test('carries calls of the host, and their failure when the parent is gone', async () => {
    const { parent, child } = pair();
    serveHost({ checkSettings: async (pgVersion) => `asked for ${pgVersion}` }, driverChannel(openParentEnd(parent)));
    const host = remoteHost(driverChannel(openChildEnd(child)));
    expect(await host.checkSettings(17, {})).toBe('asked for 17');
    await expect(host.list()).rejects.toThrow('no such call: list');
    const underWay = host.checkSettings(16, {});
    child.disconnect();
    await expect(underWay).rejects.toThrow('the parent process is gone');
    await expect(host.checkSettings(16, {})).rejects.toThrow('the parent process is gone');
  });

  test('reaches a real process, and survives its end', async () => {
    const program = join(tmpdir(), `cn-channel-${process.pid}.mjs`);
    await writeFile(
      program,
      `process.on('message', ({ kind, body }) => kind === 'permits' && process.send({ kind: 'failed', body: 'got ' + body }));
       process.send({ kind: 'ready', body: null });`,
    );
    const child: ChildProcess = fork(program, { execArgv: [] });
    const end = openParentEnd(child);
    const heard: unknown[] = [];
    end.on('ready', () => end.send('permits', 'seven'));
    await new Promise<void>((resolve) =>
      end.on('failed', (reason) => {
        heard.push(reason);
        resolve();
      }),
    );
    child.kill('SIGKILL');
    await once(child, 'exit');
    end.send('stop', null);
    await rm(program);
    expect(heard).toEqual(['got seven']);
  });
});
