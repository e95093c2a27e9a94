/** Hands the project at the auth provider over to an account there. */
import { useState } from 'react';
import { api } from '../api/client.ts';
import type { TransferNeonAuthProviderProjectReply } from '../api/generated.ts';
import { useConfirm } from '../forms/use-form.ts';
import { CopyableId } from '../ui/bits.tsx';
import { Dialog, FormDialog } from '../ui/dialog.tsx';

export function TransferDialog({ projectId, onClose }: { readonly projectId: string; readonly onClose: () => void }) {
  const [url, setUrl] = useState('');
  const body = { auth_provider: 'stack', project_id: projectId };
  const transfer = useConfirm({
    send: () => api<TransferNeonAuthProviderProjectReply>('POST', '/projects/auth/transfer_ownership', { body }),
    refresh: [['project', projectId, 'auth']],
    onDone: (reply) => setUrl(reply.url),
  });
  if (url !== '') {
    return (
      <Dialog title="Transfer ownership" onClose={onClose}>
        <div className="dialog-body">
          <p>The first person who opens this page, within an hour, chooses the account that receives the project.</p>
          <p>
            <a href={url} target="_blank" rel="noopener noreferrer">
              Choose the account
            </a>
          </p>
          <CopyableId id={url} label="the address" />
        </div>
      </Dialog>
    );
  }
  return (
    <FormDialog title="Transfer ownership" submit="Begin transfer" form={transfer} onClose={onClose}>
      <p>
        The project at the auth provider goes to an account of your own there, and cannot be given back. Keys and the
        copying of users stay as they are.
      </p>
    </FormDialog>
  );
}
