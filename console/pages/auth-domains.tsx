/** Trusted domains: where the auth provider may send people back to. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useAction } from '../api/action.ts';
import { api, at } from '../api/client.ts';
import { authDomainsQuery } from '../api/queries.ts';
import { Card } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/dialog.tsx';
import { TextField } from '../ui/field.tsx';
import { Empty, Loaded } from '../ui/states.tsx';
import { RowAction } from '../ui/table.tsx';

export function AuthDomains({ projectId }: { readonly projectId: string }) {
  const domains = useQuery(authDomainsQuery(projectId));
  const [domain, setDomain] = useState('');
  const path = at`/projects/${projectId}/auth/domains`;
  const refresh = [['project', projectId, 'auth', 'domains']];
  const add = useAction(
    (origin: string) => api<object>('POST', path, { body: { auth_provider: 'stack', domain: origin } }),
    { refresh, onDone: () => setDomain('') },
  );
  const [removing, setRemoving] = useState('');
  const remove = useAction(
    (origin: string) =>
      api<object>('DELETE', path, { body: { auth_provider: 'stack', domains: [{ domain: origin }] } }),
    { refresh, showsFailure: true, onDone: () => setRemoving('') },
  );
  return (
    <Card title="Trusted domains">
      <div className="stack">
        <Loaded query={domains} lines={2}>
          {(found) =>
            found.length === 0 ? (
              <Empty title="None yet: add where your app runs." />
            ) : (
              <ul className="item-list">
                {found.map((one) => (
                  <li key={one.domain}>
                    <code>{one.domain}</code>
                    <RowAction onClick={() => setRemoving(one.domain)}>Remove</RowAction>
                  </li>
                ))}
              </ul>
            )
          }
        </Loaded>
        <form
          className="toolbar"
          onSubmit={(event) => {
            event.preventDefault();
            if (domain.trim() !== '') add.mutate(domain.trim());
          }}
        >
          <TextField label="Domain" placeholder="https://app.example.com" value={domain} onChange={setDomain} />
          <Button type="submit" busy={add.isPending} disabled={domain.trim() === ''}>
            Add
          </Button>
        </form>
      </div>
      {removing !== '' && (
        <ConfirmDialog
          title="Remove domain"
          submit="Remove domain"
          busy={remove.isPending}
          error={remove.error}
          onSubmit={() => remove.mutate(removing)}
          onClose={() => setRemoving('')}
        >
          <p>Nobody is sent back to {removing} after signing in any more.</p>
        </ConfirmDialog>
      )}
    </Card>
  );
}
