/** A proxy's way to the broker in the parent, over Node's own channel. */
import { isPlaceTell, type PlaceChannel } from '../proxy/permits/messages.ts';

export function placeChannel(): PlaceChannel {
  return {
    send: (ask) => {
      process.send?.(ask, () => {});
    },
    onTell: (listener) => {
      process.on('message', (message) => {
        if (isPlaceTell(message)) listener(message);
      });
    },
  };
}
