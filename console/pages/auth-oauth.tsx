/** OAuth providers: whose accounts the app's users may sign in with. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, at } from '../api/client.ts';
import { type OauthProvider, oauthProvidersQuery } from '../api/queries.ts';
import { useConfirm, useForm } from '../forms/use-form.ts';
import { Badge, Card, Secret } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog, FormDialog } from '../ui/dialog.tsx';
import { SelectField, TextField } from '../ui/field.tsx';
import { Icon } from '../ui/icons.tsx';
import { Empty, Loaded } from '../ui/states.tsx';
import { RowAction } from '../ui/table.tsx';

const names: Readonly<Record<string, string>> = {
  google: 'Google',
  github: 'GitHub',
  microsoft: 'Microsoft',
  vercel: 'Vercel',
};
const nameOf = (id: string) => names[id] ?? id;
/** Stands for a provider whose issuer the operator has named; its id is typed in. */
const ofOperator = 'operator';
const pathOf = (projectId: string) => at`/projects/${projectId}/auth/oauth_providers`;
const refreshOf = (projectId: string) => [['project', projectId, 'auth', 'oauth']];

type Open = { readonly kind: 'add' } | { readonly kind: 'edit' | 'remove'; readonly provider: OauthProvider };

interface AuthOauthProps {
  readonly projectId: string;
  /** Of the auth provider. */
  readonly baseUrl: string;
}

export function AuthOauth({ projectId, baseUrl }: AuthOauthProps) {
  const providers = useQuery(oauthProvidersQuery(projectId));
  const [open, setOpen] = useState<Open | null>(null);
  const onClose = () => setOpen(null);
  const missing = Object.keys(names).filter((id) => providers.data?.every((one) => one.id !== id) ?? false);
  return (
    <Card
      title="OAuth providers"
      actions={
        <Button small onClick={() => setOpen({ kind: 'add' })}>
          <Icon name="plus" /> Add provider
        </Button>
      }
    >
      <Loaded query={providers} lines={2}>
        {(found) => <Providers providers={found} onOpen={setOpen} />}
      </Loaded>
      {open?.kind === 'add' && (
        <SaveProvider projectId={projectId} baseUrl={baseUrl} choices={missing} onClose={onClose} />
      )}
      {open?.kind === 'edit' && (
        <SaveProvider projectId={projectId} baseUrl={baseUrl} provider={open.provider} onClose={onClose} />
      )}
      {open?.kind === 'remove' && <RemoveProvider projectId={projectId} provider={open.provider} onClose={onClose} />}
    </Card>
  );
}

interface ProvidersProps {
  readonly providers: readonly OauthProvider[];
  readonly onOpen: (open: Open) => void;
}

function Providers({ providers, onOpen }: ProvidersProps) {
  if (providers.length === 0) return <Empty title="None: people sign in with email and password." />;
  return (
    <ul className="item-list">
      {providers.map((provider) => (
        <li key={provider.id}>
          <span>
            {nameOf(provider.id)} <Usable provider={provider} />
          </span>
          <span className="row">
            <RowAction aria-label={`Edit ${nameOf(provider.id)}`} onClick={() => onOpen({ kind: 'edit', provider })}>
              Edit
            </RowAction>
            <RowAction
              aria-label={`Remove ${nameOf(provider.id)}`}
              onClick={() => onOpen({ kind: 'remove', provider })}
            >
              Remove
            </RowAction>
          </span>
        </li>
      ))}
    </ul>
  );
}

/** Shared clients exist only at an auth provider elsewhere, and only that one knows whether it has any. */
function Usable({ provider }: { readonly provider: OauthProvider }) {
  if (provider.type === 'shared')
    return <span className="hint">with the auth provider’s own client, if it has one</span>;
  return (
    <>
      <Badge tone="good">usable</Badge> <span className="hint">client {provider.client_id}</span>
    </>
  );
}

interface SaveProviderProps {
  readonly projectId: string;
  readonly baseUrl: string;
  /** To change this one; otherwise one of the choices is added. */
  readonly provider?: OauthProvider;
  readonly choices?: readonly string[];
  readonly onClose: () => void;
}

function SaveProvider({ projectId, baseUrl, provider, choices = [], onClose }: SaveProviderProps) {
  const form = useForm({
    initial: {
      id: provider?.id ?? choices[0] ?? ofOperator,
      ownId: '',
      clientId: provider?.client_id ?? '',
      secret: '',
      tenant: '',
    },
    send: (values) => {
      const body = credentialsOf(values);
      return provider === undefined
        ? api<object>('POST', pathOf(projectId), { body: { id: idOf(values), ...body } })
        : api<object>('PATCH', `${pathOf(projectId)}/${encodeURIComponent(provider.id)}`, { body });
    },
    refresh: refreshOf(projectId),
    onDone: onClose,
  });
  const id = idOf(form.values);
  return (
    <FormDialog
      title={provider === undefined ? 'Add OAuth provider' : `Change ${nameOf(id)}`}
      submit={provider === undefined ? 'Add' : 'Save'}
      form={form}
      disabled={provider !== undefined && Object.keys(credentialsOf(form.values)).length === 0}
      onClose={onClose}
    >
      {provider === undefined && (
        <SelectField
          label="Provider"
          {...form.field('id')}
          choices={[
            ...choices.map((value) => ({ value, text: nameOf(value) })),
            { value: ofOperator, text: 'One that this installation adds' },
          ]}
        />
      )}
      {form.values.id === ofOperator && (
        <TextField
          label="Id"
          hint="As the operator of Catnap has named it in CATNAP_OAUTH_ISSUERS."
          {...form.field('ownId')}
          pattern="[a-z0-9\-]{1,60}"
          required
        />
      )}
      <p className="hint">Register this redirect URI at {id === '' ? 'the provider' : nameOf(id)}:</p>
      <Secret text={`${baseUrl}/api/v1/auth/oauth/callback/${id}`} label="the redirect URI" />
      <TextField label="Client id" hint="Of your own application there." {...form.field('clientId')} maxLength={500} />
      <TextField
        label="Client secret"
        type="password"
        autoComplete="new-password"
        {...form.field('secret')}
        maxLength={500}
      />
      {id === 'microsoft' && <TextField label="Tenant id" {...form.field('tenant')} maxLength={200} />}
    </FormDialog>
  );
}

const idOf = ({ id, ownId }: { readonly id: string; readonly ownId: string }) =>
  id === ofOperator ? ownId.trim() : id;

/** Only those that were given. */
function credentialsOf(values: { readonly clientId: string; readonly secret: string; readonly tenant: string }) {
  const given = {
    client_id: values.clientId.trim(),
    client_secret: values.secret.trim(),
    microsoft_tenant_id: values.tenant.trim(),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''));
}

interface RemoveProviderProps {
  readonly projectId: string;
  readonly provider: OauthProvider;
  readonly onClose: () => void;
}

function RemoveProvider({ projectId, provider, onClose }: RemoveProviderProps) {
  const path = `${pathOf(projectId)}/${encodeURIComponent(provider.id)}`;
  const remove = useConfirm({
    send: () => api<object>('DELETE', path),
    refresh: refreshOf(projectId),
    onDone: onClose,
  });
  return (
    <ConfirmDialog title={`Remove ${nameOf(provider.id)}`} submit="Remove" form={remove} onClose={onClose}>
      <p>Nobody can sign in with {nameOf(provider.id)} any more.</p>
    </ConfirmDialog>
  );
}
