/** The provider in the worker: sends webhooks and mails. A notification makes it fast, a poll makes it correct. */
import { type Follower, follow } from '../../db/follow.ts';
import type { Logger } from '../../lib/log.ts';
import { mailsChannel } from '../statements/mails.ts';
import { userChangesChannel } from '../statements/user-changes.ts';
import { createMailer, type MailSettings } from './mail-delivery.ts';
import type { AuthProviderParts } from './parts.ts';
import { deliverNextMessage } from './webhook-delivery.ts';

const pollMs = 5_000;
/** One endpoint that hangs must not delay the others. */
const webhookLoops = 4;

export async function startDeliveries(
  parts: AuthProviderParts,
  log: Logger,
  mail: MailSettings | null,
): Promise<{ stop(): Promise<void> }> {
  const mailer = mail === null ? null : createMailer(mail);
  const deliver = (channel: string, next: () => Promise<boolean>) => followOutbox(parts, log, channel, next);
  const loops = await Promise.all([
    ...Array.from({ length: webhookLoops }, () => deliver(userChangesChannel, () => deliverNextMessage(parts))),
    ...(mailer === null ? [] : [deliver(mailsChannel, () => mailer.sendNext(parts))]),
  ]);
  return {
    stop: async () => {
      await Promise.all(loops.map((loop) => loop.stop()));
      mailer?.close();
    },
  };
}

/** Runs `next` until it has nothing left to send, whenever the channel notifies. */
function followOutbox(
  parts: AuthProviderParts,
  log: Logger,
  channel: string,
  next: () => Promise<boolean>,
): Promise<Follower> {
  return follow(parts.database, {
    channels: [channel],
    pollMs,
    run: async (stopping) => {
      while (!stopping.aborted && (await next()));
    },
    onFailure: (error) => log.error({ err: error }, 'a delivery of the auth provider failed'),
  });
}
