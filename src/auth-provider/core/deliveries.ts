/** The provider in the worker: webhooks and mails go out. A notification makes it quick, a poll makes it right. */
import { delay } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import { mailsChannel } from '../statements/mails.ts';
import { userChangesChannel } from '../statements/user-changes.ts';
import { createMailer, type MailSettings } from './mail-delivery.ts';
import type { AuthProviderParts } from './parts.ts';
import { deliverNextMessage } from './webhook-delivery.ts';

const pollMs = 5_000;
/** One endpoint that hangs must not hold up the others. */
const webhookLoops = 4;

export async function startDeliveries(
  parts: AuthProviderParts,
  log: Logger,
  mail: MailSettings | null,
): Promise<{ stop(): Promise<void> }> {
  const stopping = new AbortController();
  const mailer = mail === null ? null : createMailer(mail);
  const webhooks = Array.from({ length: webhookLoops }, () =>
    startLoop(() => deliverNextMessage(parts), log, stopping),
  );
  const mails = mailer === null ? [] : [startLoop(() => mailer.sendNext(parts), log, stopping)];
  const unlisten = [
    await parts.database.listen(userChangesChannel, () => webhooks.forEach((loop) => void loop.wake())),
    await parts.database.listen(mailsChannel, () => mails.forEach((loop) => void loop.wake())),
  ];
  return {
    stop: async () => {
      stopping.abort();
      for (const end of unlisten) await end();
      await Promise.all([...webhooks, ...mails].map((loop) => loop.ended));
      mailer?.close();
    },
  };
}

/** Runs `next` until it has nothing left, then sleeps until it is woken or the poll comes round. */
function startLoop(next: () => Promise<boolean>, log: Logger, stopping: AbortController) {
  let pause = new AbortController();
  let isWanted = false;
  stopping.signal.addEventListener('abort', () => pause.abort());
  const run = async () => {
    while (!stopping.signal.aborted) {
      isWanted = false;
      const didWork = await next().catch((error: unknown) => {
        log.error({ err: error }, 'a delivery of the auth provider failed');
        return false;
      });
      if (didWork || isWanted) continue;
      pause = new AbortController();
      if (!stopping.signal.aborted) await delay(pollMs, pause.signal);
    }
  };
  const wake = () => {
    isWanted = true;
    pause.abort();
  };
  return { wake, ended: run() };
}
