/** The provider in the worker: sends webhooks and mails. A notification makes it fast, a poll makes it correct. */
import { type Follower, follow } from '../../db/follow.ts';
import type { Logger } from '../../lib/log.ts';
import { mailsChannel } from '../statements/mails.ts';
import { userChangesChannel } from '../statements/user-changes.ts';
import { createMailer, type MailSettings } from './mail-delivery.ts';
import type { AuthProviderParts } from './parts.ts';
import { deliverNextMessage } from './webhook-delivery.ts';

const usualPollMs = 5_000;
/** Of the loops that send webhooks one polls, and calls another when it has found something. */
const calledPollMs = 60_000;
/** One endpoint that hangs must not delay the others. */
const webhookLoops = 4;

export async function startDeliveries(
  parts: AuthProviderParts,
  log: Logger,
  mail: MailSettings | null,
): Promise<{ stop(): Promise<void> }> {
  const mailer = mail === null ? null : createMailer(mail);
  const webhooks: Follower[] = [];
  const deliverWebhooks = (index: number) =>
    followOutbox(parts, log, {
      channel: userChangesChannel,
      pollMs: index === 0 ? usualPollMs : calledPollMs,
      next: () => deliverNextMessage(parts, () => webhooks[index + 1]?.nudge()),
    });
  for (let index = 0; index < webhookLoops; index++) webhooks.push(await deliverWebhooks(index));
  const mails =
    mailer === null
      ? []
      : [
          await followOutbox(parts, log, {
            channel: mailsChannel,
            pollMs: usualPollMs,
            next: () => mailer.sendNext(parts),
          }),
        ];
  const loops = [...webhooks, ...mails];
  return {
    stop: async () => {
      await Promise.all(loops.map((loop) => loop.stop()));
      mailer?.close();
    },
  };
}

interface Outbox {
  readonly channel: string;
  readonly pollMs: number;
  /** Sends one; false when there is none. */
  readonly next: () => Promise<boolean>;
}

/** Runs `next` until it has nothing left to send, whenever the channel notifies. */
function followOutbox(
  { database }: AuthProviderParts,
  log: Logger,
  { channel, pollMs, next }: Outbox,
): Promise<Follower> {
  return follow(database, {
    channels: [channel],
    pollMs,
    run: async (stopping) => {
      while (!stopping.aborted && (await next()));
    },
    onFailure: (error) => log.error({ err: error }, 'a delivery of the auth provider failed'),
  });
}
