/** The dialog that makes a project: name, Postgres version, size of its first compute. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useAction } from '../api/action.ts';
import { api } from '../api/client.ts';
import { installationQuery } from '../api/queries.ts';
import type { Project } from '../api/types.ts';
import { FormDialog } from '../ui/dialog.tsx';
import { SelectField, TextField } from '../ui/field.tsx';
import { initialSizing, type Sizing, SizingFields, sizingBody } from './sizing-fields.tsx';

const usualVersion = 17;
const usualVersions: readonly number[] = [17, 18];

export function CreateProject({ orgId, onClose }: { readonly orgId: string; readonly onClose: () => void }) {
  const navigate = useNavigate();
  const [name, setName] = useState('');
  const [version, setVersion] = useState(usualVersion);
  const [sizing, setSizing] = useState<Sizing>(initialSizing);
  const versions = useQuery(installationQuery).data?.pg_versions ?? usualVersions;
  const create = useAction((project: object) => api<{ project: Project }>('POST', '/projects', { body: { project } }), {
    refresh: [['projects']],
    showsFailure: true,
    onDone: ({ project }) => navigate({ to: '/projects/$projectId', params: { projectId: project.id } }),
  });
  const submit = () => {
    const { autoscaling_limit_min_cu, autoscaling_limit_max_cu, suspend_timeout_seconds } = sizingBody(sizing);
    create.mutate({
      org_id: orgId,
      pg_version: version,
      autoscaling_limit_min_cu,
      autoscaling_limit_max_cu,
      ...(suspend_timeout_seconds === 0 ? {} : { default_endpoint_settings: { suspend_timeout_seconds } }),
      ...(name.trim() === '' ? {} : { name: name.trim() }),
    });
  };
  return (
    <FormDialog
      title="New project"
      submit="Create project"
      busy={create.isPending}
      error={create.error}
      onSubmit={submit}
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} maxLength={256} autoFocus placeholder="my-app" />
      <SelectField
        label="Postgres version"
        value={String(version)}
        choices={versions.map((major) => ({ value: String(major), text: `Postgres ${major}` }))}
        onChange={(value) => setVersion(Number(value))}
      />
      <SizingFields sizing={sizing} onChange={setSizing} />
    </FormDialog>
  );
}
