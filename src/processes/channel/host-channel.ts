/** The part of the channel over which the privileged host is called. */
import type { HostChannel } from '../../compute/local/channel/remote.ts';
import type { Channel } from './channel.ts';

interface HostMessages {
  readonly host: unknown;
}

export function hostChannel(channel: Channel<HostMessages, HostMessages>): HostChannel {
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
