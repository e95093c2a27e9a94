/** Trusted domains: where the auth provider may send people back to. */
import { type QueryKey, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, at } from '../api/client.ts';
import { authDomainsQuery } from '../api/queries.ts';
import { useConfirm, useForm } from '../forms/use-form.ts';
import { Card } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/dialog.tsx';
import { TextField } from '../ui/field.tsx';
import { Form } from '../ui/form.tsx';
import { Empty, Loaded } from '../ui/states.tsx';
import { RowAction } from '../ui/table.tsx';

export function AuthDomains({ projectId }: { readonly projectId: string }) {
  const domains = useQuery(authDomainsQuery(projectId));
  const path = at`/projects/${projectId}/auth/domains`;
  const refresh = [['project', projectId, 'auth', 'domains']];
  const form = useForm({
    initial: { domain: '' },
    send: ({ domain }) => api<object>('POST', path, { body: { auth_provider: 'stack', domain: domain.trim() } }),
    refresh,
    showsFailure: false,
    resets: true,
  });
  const [removing, setRemoving] = useState('');
  const isEmpty = form.values.domain.trim() === '';
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
        <Form form={form} disabled={isEmpty} className="toolbar">
          <TextField label="Domain" placeholder="https://app.example.com" {...form.field('domain')} />
          <Button type="submit" busy={form.isBusy} disabled={isEmpty}>
            Add
          </Button>
        </Form>
      </div>
      {removing !== '' && (
        <RemoveDomain path={path} domain={removing} refresh={refresh} onClose={() => setRemoving('')} />
      )}
    </Card>
  );
}

interface RemoveDomainProps {
  readonly path: string;
  readonly domain: string;
  readonly refresh: readonly QueryKey[];
  readonly onClose: () => void;
}

function RemoveDomain({ path, domain, refresh, onClose }: RemoveDomainProps) {
  const remove = useConfirm({
    send: () => api<object>('DELETE', path, { body: { auth_provider: 'stack', domains: [{ domain }] } }),
    refresh,
    onDone: onClose,
  });
  return (
    <ConfirmDialog title="Remove domain" submit="Remove domain" form={remove} onClose={onClose}>
      <p>Nobody is sent back to {domain} after signing in any more.</p>
    </ConfirmDialog>
  );
}
