/** Settings of a project: name, new computes, who may connect, replication, history, updates, quotas; its deletion. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { api, at } from '../api/client.ts';
import type { Project } from '../api/generated.ts';
import { branchesQuery, projectQuery, sessionQuery } from '../api/queries.ts';
import { initialSizing, type Sizing, SizingFields, sizingBody } from '../computes/sizing-fields.tsx';
import { useConfirm, useForm } from '../forms/use-form.ts';
import { Card, PageHead } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog, Dialog } from '../ui/dialog.tsx';
import { CheckField, Field, TextField } from '../ui/field.tsx';
import { Form } from '../ui/form.tsx';
import { Loaded } from '../ui/states.tsx';
import { HistoryRetention } from './history-retention.tsx';
import { LogicalReplication } from './logical-replication.tsx';
import { MaintenanceWindow } from './maintenance-window.tsx';
import { Quotas } from './quotas.tsx';

export function SettingsPage() {
  const { projectId } = useParams({ from: '/projects/$projectId/settings' });
  const project = useQuery(projectQuery(projectId));
  return (
    <>
      <title>Settings · Catnap</title>
      <PageHead title="Settings" />
      <Loaded query={project}>{(found) => <Settings key={found.id} project={found} />}</Loaded>
    </>
  );
}

function useSettingsForm<Values extends object>(
  project: Project,
  initial: Values,
  changeOf: (values: Values) => object,
) {
  return useForm({
    initial,
    send: (values) => api<object>('PATCH', at`/projects/${project.id}`, { body: { project: changeOf(values) } }),
    refresh: [['project', project.id], ['projects']],
    done: 'Saved.',
    showsFailure: false,
  });
}

function Settings({ project }: { readonly project: Project }) {
  const canDelete = useQuery(sessionQuery).data?.key?.kind !== 'project';
  return (
    <div className="stack narrow">
      <Name project={project} />
      <NewComputes project={project} />
      <AllowedAddresses project={project} />
      <OutboundConnections project={project} />
      <LogicalReplication project={project} />
      <HistoryRetention project={project} />
      <MaintenanceWindow project={project} />
      <Quotas project={project} />
      {canDelete && <DeleteProject project={project} />}
    </div>
  );
}

function Name({ project }: { readonly project: Project }) {
  const form = useSettingsForm(project, { name: project.name }, ({ name }) => ({ name: name.trim() }));
  const { name } = form.values;
  return (
    <Card title="Name">
      <Form form={form} className="stack">
        <TextField label="Name of the project" {...form.field('name')} maxLength={256} required />
        <Button type="submit" busy={form.isBusy} disabled={name.trim() === '' || name === project.name}>
          Save name
        </Button>
      </Form>
    </Card>
  );
}

function NewComputes({ project }: { readonly project: Project }) {
  const form = useSettingsForm(project, { sizing: defaultsOf(project) }, ({ sizing }) => ({
    default_endpoint_settings: sizingBody(sizing),
  }));
  return (
    <Card title="New computes">
      <Form form={form} className="stack">
        <p className="hint">Defaults for a compute that is created without a size of its own.</p>
        <SizingFields sizing={form.values.sizing} onChange={(sizing) => form.set({ sizing })} />
        <Button type="submit" busy={form.isBusy}>
          Save defaults
        </Button>
      </Form>
    </Card>
  );
}

function defaultsOf({ default_endpoint_settings: given }: Project): Sizing {
  const min = given?.autoscaling_limit_min_cu ?? initialSizing.min;
  const max = given?.autoscaling_limit_max_cu ?? min;
  return { isAutoscaling: min !== max, min, max, delay: given?.suspend_timeout_seconds ?? initialSizing.delay };
}

function AllowedAddresses({ project }: { readonly project: Project }) {
  const allowed = project.settings?.allowed_ips;
  const initial = {
    text: (allowed?.ips ?? []).join('\n'),
    isProtectedOnly: allowed?.protected_branches_only ?? false,
    isPublicBlocked: project.settings?.block_public_connections ?? false,
  };
  const form = useSettingsForm(project, initial, ({ text, isProtectedOnly, isPublicBlocked }) => {
    const ips = text.split(/[\s,]+/).filter((entry) => entry !== '');
    const allowed_ips = { ips, protected_branches_only: isProtectedOnly };
    return { settings: { allowed_ips, block_public_connections: isPublicBlocked } };
  });
  return (
    <Card title="Who may connect">
      <Form form={form} className="stack">
        <Field
          label="Allowed addresses"
          hint="One on each line: an address, a CIDR block, or a range a-b. Empty lets everybody in."
        >
          {(id, hintId) => (
            <textarea
              className="input"
              id={id}
              aria-describedby={hintId}
              rows={4}
              spellCheck={false}
              value={form.values.text}
              onChange={(event) => form.set({ text: event.target.value })}
            />
          )}
        </Field>
        <CheckField label="For protected branches alone" {...form.check('isProtectedOnly')} />
        <CheckField
          label="Block public connections"
          hint="Only clients with a loopback or private address may connect, whatever the list allows."
          {...form.check('isPublicBlocked')}
        />
        <Button type="submit" busy={form.isBusy}>
          Save addresses
        </Button>
      </Form>
    </Card>
  );
}

function OutboundConnections({ project }: { readonly project: Project }) {
  const initial = { isAllowed: project.settings?.allow_outbound_connections ?? false };
  const form = useSettingsForm(project, initial, ({ isAllowed }) => ({
    settings: { allow_outbound_connections: isAllowed },
  }));
  return (
    <Card title="What computes may reach">
      <Form form={form} className="stack">
        <CheckField
          label="Outbound connections"
          hint="SQL may connect to the internet: foreign servers, subscriptions. A change restarts computes that are awake."
          {...form.check('isAllowed')}
        />
        <Button type="submit" busy={form.isBusy}>
          Save outbound connections
        </Button>
      </Form>
    </Card>
  );
}

function DeleteProject({ project }: { readonly project: Project }) {
  const [isAsking, setAsking] = useState(false);
  const navigate = useNavigate();
  const branches = useQuery(branchesQuery(project.id)).data ?? [];
  const guarded = branches.filter((branch) => branch.protected);
  const remove = useConfirm({
    send: () => api<object>('DELETE', at`/projects/${project.id}`),
    refresh: [['projects'], ['deleted']],
    done: `Project ${project.name} is deleted.`,
    onDone: () => navigate({ to: '/' }),
  });
  return (
    <Card title="Delete project">
      <div className="stack">
        <p>
          All its branches, databases and computes are deleted. It can be recovered under Deleted until the time shown
          there.
        </p>
        <div>
          <Button tone="danger" onClick={() => setAsking(true)}>
            Delete project
          </Button>
        </div>
      </div>
      {isAsking && guarded.length > 0 && (
        <Dialog title="Delete project" onClose={() => setAsking(false)}>
          <div className="dialog-body">
            <p>A project with a protected branch cannot be deleted. Stop protecting:</p>
            <ul className="named-list">
              {guarded.map(({ id, name }) => (
                <li key={id}>
                  <Link
                    to="/projects/$projectId/branches/$branchId"
                    params={{ projectId: project.id, branchId: id }}
                    onClick={() => setAsking(false)}
                  >
                    {name}
                  </Link>
                </li>
              ))}
            </ul>
          </div>
        </Dialog>
      )}
      {isAsking && guarded.length === 0 && (
        <ConfirmDialog
          title="Delete project"
          submit="Delete project"
          typed={project.name}
          form={remove}
          onClose={() => setAsking(false)}
        >
          <p>Its clients are disconnected at once. It can be recovered under Deleted until the time shown there.</p>
        </ConfirmDialog>
      )}
    </Card>
  );
}
