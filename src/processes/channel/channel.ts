/**
 * Node's own channel between the parent and one child process. Every message is an envelope with a kind and a body;
 * anything else, or a kind that this end does not know, is dropped here.
 */

/** A child process seen from its parent, or `process` seen from the child. */
export interface ChannelEnd {
  readonly connected?: boolean;
  send?(message: object, callback?: (error: Error | null) => void): boolean;
  on(event: 'message', listener: (message: unknown) => void): unknown;
  on(event: 'disconnect', listener: () => void): unknown;
}

export interface Channel<Sent, Received> {
  readonly isOpen: boolean;
  /** A message to a process that is gone is not a failure, unless the sender passes `onFailure`. */
  send<Kind extends keyof Sent & string>(kind: Kind, body: Sent[Kind], onFailure?: (error: Error) => void): void;
  on<Kind extends keyof Received & string>(kind: Kind, listener: (body: Received[Kind]) => void): void;
  onClose(listener: () => void): void;
}

interface Envelope<Received> {
  readonly kind: keyof Received & string;
  readonly body: Received[keyof Received];
}

/** `kinds` are those that may arrive at this end. */
export function openChannel<Sent, Received>(
  end: ChannelEnd,
  kinds: readonly (keyof Received & string)[],
): Channel<Sent, Received> {
  const listeners = new Map<string, ((body: never) => void)[]>(kinds.map((kind) => [kind, []]));
  const isEnvelope = (message: unknown): message is Envelope<Received> =>
    typeof message === 'object' &&
    message !== null &&
    'body' in message &&
    'kind' in message &&
    typeof message.kind === 'string' &&
    listeners.has(message.kind);
  end.on('message', (message) => {
    if (!isEnvelope(message)) return;
    for (const listener of listeners.get(message.kind) ?? []) listener(message.body as never);
  });
  return {
    get isOpen() {
      return end.connected === true;
    },
    send: (kind, body, onFailure = () => {}) => {
      if (!end.connected || end.send === undefined) return onFailure(new Error('the other process is gone'));
      // With a callback, because without one nothing would handle the error when the other process has ended.
      end.send({ kind, body }, (error) => {
        if (error) onFailure(error);
      });
    },
    on: (kind, listener) => void listeners.get(kind)?.push(listener),
    onClose: (listener) => void end.on('disconnect', listener),
  };
}
