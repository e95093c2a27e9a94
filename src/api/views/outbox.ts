/** Mails of the outbox on the wire. */
import type { OutboxMail } from '../../auth-provider/core/outbox.ts';

export function outboxMailView(mail: OutboxMail) {
  return {
    id: mail.id,
    auth_provider_project_id: mail.projectId,
    auth_provider_project_name: mail.projectName,
    kind: mail.kind,
    to: mail.to,
    subject: mail.subject,
    text: mail.text,
    status: mail.status,
    ...(mail.error === null ? {} : { error: mail.error }),
    created_at: mail.createdAt.toISOString(),
  };
}
