/** Mails that the auth provider has written for this project's users. Only the operator may read them. */
import { useQuery } from '@tanstack/react-query';
import { ApiError } from '../api/client.ts';
import { type Mail, outboxQuery } from '../api/queries.ts';
import { Ago, Badge, Card } from '../ui/bits.tsx';
import { Empty, Loaded } from '../ui/states.tsx';

export function AuthOutbox({ providerProjectId }: { readonly providerProjectId: string }) {
  const mails = useQuery(outboxQuery);
  // Other keys than the operator's are refused; then there is nothing to show.
  if (mails.error instanceof ApiError && mails.error.status < 500) return null;
  return (
    <Card title="Outbox">
      <Loaded query={mails} lines={2}>
        {(found) => <Mails mails={found.filter((mail) => mail.auth_provider_project_id === providerProjectId)} />}
      </Loaded>
    </Card>
  );
}

function Mails({ mails }: { readonly mails: readonly Mail[] }) {
  if (mails.length === 0) return <Empty title="No mails to users of this project." />;
  return (
    <ul className="stack">
      {mails.map((mail) => (
        <li key={mail.id}>
          <details>
            <summary>
              {mail.subject} <span className="soft">to {mail.to}</span> <Badge>{mail.status}</Badge>{' '}
              <span className="hint">
                <Ago at={mail.created_at} />
              </span>
            </summary>
            <pre className="code-block wrapped">{mail.text}</pre>
            {mail.error !== undefined && <p className="hint">{mail.error}</p>}
          </details>
        </li>
      ))}
    </ul>
  );
}
