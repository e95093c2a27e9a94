/** `catnap outbox`: mails of the embedded auth provider, instead of a mailbox. */
import { type Command, InvalidArgumentError } from 'commander';
import { CliFailure } from '../kit/failure.ts';
import type { ListOutboxReply } from '../kit/generated.ts';
import type { RunCommand, Session } from '../kit/session.ts';

export function addOutbox(program: Command, run: RunCommand): void {
  program
    .command('outbox')
    .description('mails of the auth provider: list the newest, or show one with its link')
    .argument('[id]', 'show this mail in full', parseId)
    .option('--limit <count>', 'how many to list', parseId, 20)
    .action((id: number | undefined, { limit }: { limit: number }) => run((session) => showOutbox(session, id, limit)));
}

function parseId(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1.');
  return Number(text);
}

async function showOutbox(session: Session, id: number | undefined, limit: number): Promise<undefined> {
  const { client, writer, parts, format } = session;
  // One mail is the newest of those before the next id.
  const query = id === undefined ? { limit } : { limit: 1, before: id + 1 };
  const { mails } = await client.get<ListOutboxReply>('/outbox', query);
  if (id === undefined) {
    const columns = { id: 'id', created_at: 'written', to: 'to', subject: 'subject', status: 'status' };
    writer.list(mails, columns, 'The outbox is empty.');
    return;
  }
  const mail = mails.find((candidate) => candidate.id === id);
  if (mail === undefined) throw new CliFailure(`there is no mail ${id} in the outbox`);
  writer.record(mail, { to: 'to', subject: 'subject', created_at: 'written', status: 'status', error: 'error' });
  if (format === 'table') parts.stdout.write(`\n${printable(mail.text)}\n`);
}

/** Names of users may contain escape sequences that would repaint the terminal. */
function printable(text: string): string {
  return text.replace(/[^\P{Cc}\n]/gu, '?');
}
