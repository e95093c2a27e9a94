/** A proxy's way to the broker in the parent, over Node's own channel. */
import { isPermitAnswer, type PermitChannel } from '../proxy/permits/messages.ts';

export function placeChannel(): PermitChannel {
  return {
    send: (request) => {
      process.send?.(request, () => {});
    },
    onAnswer: (listener) => {
      process.on('message', (message) => {
        if (isPermitAnswer(message)) listener(message);
      });
    },
  };
}
