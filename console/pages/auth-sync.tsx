/** Whether the table of users keeps up with the auth provider; and if not, what failed and what to do about it. */
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { NeonAuthIntegration } from '../api/generated.ts';
import { Ago } from '../ui/bits.tsx';

interface AuthSyncProps {
  readonly projectId: string;
  readonly integration: NeonAuthIntegration;
}

export function AuthSync({ projectId, integration }: AuthSyncProps) {
  const { users_sync_error: copyError, users_provider_error: readError, branch_id, db_name } = integration;
  return (
    <div className="auth-sync" role="status">
      <LastCopied at={integration.users_synced_at} isFailing={copyError !== undefined || readError !== undefined} />
      {copyError !== undefined && (
        <Trouble title="Users cannot be copied into the database." reason={copyError}>
          Something about <code>neon_auth.users_sync</code> does not take them: a constraint, a trigger, or a column
          that was changed. Correct it in the{' '}
          <Link to="/projects/$projectId/sql" params={{ projectId }} search={{ branch: branch_id, database: db_name }}>
            SQL editor
          </Link>
          . Catnap tries again by itself, within five minutes while the compute is awake and at its next start; no user
          is lost meanwhile.
        </Trouble>
      )}
      {readError !== undefined && (
        <Trouble title="Users cannot be read from the auth provider." reason={readError}>
          The table stays as it is meanwhile. Catnap asks again by itself: at least every five minutes, or once an hour
          if its key is no longer accepted. The cause is in Catnap’s log.
        </Trouble>
      )}
    </div>
  );
}

function LastCopied({ at, isFailing }: { readonly at: string | undefined; readonly isFailing: boolean }) {
  if (at === undefined)
    return <p className="hint">Not copied yet: that is done while the compute is awake, and at its next start.</p>;
  return (
    <p className="hint">
      {isFailing ? 'Last copied' : 'Up to date. Last copied'} <Ago at={at} />.
    </p>
  );
}

interface TroubleProps {
  readonly title: string;
  /** What the API says. */
  readonly reason: string;
  /** What to do. */
  readonly children: ReactNode;
}

function Trouble({ title, reason, children }: TroubleProps) {
  return (
    <div className="failure">
      <p className="failure-title">{title}</p>
      <p>
        <code>{reason}</code>
      </p>
      <p>{children}</p>
    </div>
  );
}
