/** Both ends of a channel between a parent and a child, in one process. */
import { EventEmitter } from 'node:events';
import type { DriverChannel } from '../../src/compute/interface/driver-host.ts';

/** Sends what JSON keeps, as the real channel does. */
export class ChannelEnd extends EventEmitter implements DriverChannel {
  connected = true;
  peer: ChannelEnd | null = null;

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

export function makeChannelPair(): { parent: ChannelEnd; child: ChannelEnd } {
  const [parent, child] = [new ChannelEnd(), new ChannelEnd()];
  parent.peer = child;
  child.peer = parent;
  return { parent, child };
}
