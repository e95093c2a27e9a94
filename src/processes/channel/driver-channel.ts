/** The part of the channel over which a driver in a child calls its host in the parent. */
import type { DriverChannel } from '../../compute/interface/driver-host.ts';
import type { Channel } from './channel.ts';

interface HostMessages {
  readonly host: unknown;
}

export function driverChannel(channel: Channel<HostMessages, HostMessages>): DriverChannel {
  return {
    get connected() {
      return channel.isOpen;
    },
    send: (message, callback) => {
      channel.send('host', message, callback);
      return true;
    },
    on: (event: 'message' | 'disconnect', listener: (message: unknown) => void) => {
      if (event === 'message') channel.on('host', listener);
      else channel.onClose(() => listener(undefined));
    },
  };
}
