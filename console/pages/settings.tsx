/** Settings of a project: name, what new computes get, who may connect; and its deletion. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { useAction } from '../api/action.ts';
import { api, at } from '../api/client.ts';
import { projectQuery, sessionQuery } from '../api/queries.ts';
import type { Project } from '../api/types.ts';
import { Card, PageHead } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/dialog.tsx';
import { CheckField, Field, TextField } from '../ui/field.tsx';
import { Loaded } from '../ui/states.tsx';
import { initialSizing, type Sizing, SizingFields, sizingBody } from './sizing-fields.tsx';

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

function useUpdate(project: Project) {
  return useAction(
    (change: object) => api<object>('PATCH', at`/projects/${project.id}`, { body: { project: change } }),
    { refresh: [['project', project.id], ['projects']], done: 'Saved.' },
  );
}

function Settings({ project }: { readonly project: Project }) {
  const canDelete = useQuery(sessionQuery).data?.key?.kind !== 'project';
  return (
    <div className="stack narrow">
      <Name project={project} />
      <NewComputes project={project} />
      <AllowedAddresses project={project} />
      {canDelete && <DeleteProject project={project} />}
    </div>
  );
}

function Name({ project }: { readonly project: Project }) {
  const [name, setName] = useState(project.name);
  const update = useUpdate(project);
  return (
    <Card title="Name">
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          update.mutate({ name: name.trim() });
        }}
      >
        <TextField label="Name of the project" value={name} onChange={setName} maxLength={256} required />
        <Button type="submit" busy={update.isPending} disabled={name.trim() === '' || name === project.name}>
          Save name
        </Button>
      </form>
    </Card>
  );
}

function NewComputes({ project }: { readonly project: Project }) {
  const [sizing, setSizing] = useState<Sizing>(() => defaultsOf(project));
  const update = useUpdate(project);
  return (
    <Card title="New computes">
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          update.mutate({ default_endpoint_settings: sizingBody(sizing) });
        }}
      >
        <p className="hint">What a compute gets that is made without saying otherwise.</p>
        <SizingFields sizing={sizing} onChange={setSizing} />
        <Button type="submit" busy={update.isPending}>
          Save defaults
        </Button>
      </form>
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
  const [text, setText] = useState((allowed?.ips ?? []).join('\n'));
  const [isProtectedOnly, setProtectedOnly] = useState(allowed?.protected_branches_only ?? false);
  const update = useUpdate(project);
  const submit = () => {
    const ips = text.split(/[\s,]+/).filter((entry) => entry !== '');
    update.mutate({ settings: { allowed_ips: { ips, protected_branches_only: isProtectedOnly } } });
  };
  return (
    <Card title="Who may connect">
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
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
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
          )}
        </Field>
        <CheckField label="For protected branches alone" checked={isProtectedOnly} onChange={setProtectedOnly} />
        <Button type="submit" busy={update.isPending}>
          Save addresses
        </Button>
      </form>
    </Card>
  );
}

function DeleteProject({ project }: { readonly project: Project }) {
  const [isAsking, setAsking] = useState(false);
  const navigate = useNavigate();
  const remove = useAction(() => api<object>('DELETE', at`/projects/${project.id}`), {
    refresh: [['projects']],
    done: `Project ${project.name} is deleted.`,
    showsFailure: true,
    onDone: () => navigate({ to: '/' }),
  });
  return (
    <Card title="Delete project">
      <div className="stack">
        <p>All its branches, databases and computes are deleted. This cannot be undone.</p>
        <div>
          <Button tone="danger" onClick={() => setAsking(true)}>
            Delete project
          </Button>
        </div>
      </div>
      {isAsking && (
        <ConfirmDialog
          title="Delete project"
          submit="Delete project"
          typed={project.name}
          busy={remove.isPending}
          error={remove.error}
          onSubmit={() => remove.mutate()}
          onClose={() => setAsking(false)}
        >
          <p>Nothing of {project.name} can be brought back.</p>
        </ConfirmDialog>
      )}
    </Card>
  );
}
