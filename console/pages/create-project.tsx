/** The dialog that makes a project: name, Postgres version, size of its first compute. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { api } from '../api/client.ts';
import type { CreateProjectReply } from '../api/generated.ts';
import { installationQuery } from '../api/queries.ts';
import { initialSizing, SizingFields, sizingBody } from '../computes/sizing-fields.tsx';
import { useForm } from '../forms/use-form.ts';
import { FormDialog } from '../ui/dialog.tsx';
import { SelectField, TextField } from '../ui/field.tsx';

const usualVersion = 17;
const usualVersions: readonly number[] = [17, 18];

export function CreateProject({ orgId, onClose }: { readonly orgId: string; readonly onClose: () => void }) {
  const navigate = useNavigate();
  const versions = useQuery(installationQuery).data?.pg_versions ?? usualVersions;
  const form = useForm({
    initial: { name: '', version: usualVersion, sizing: initialSizing },
    send: (values) => {
      const name = values.name.trim();
      const { suspend_timeout_seconds, ...size } = sizingBody(values.sizing);
      const project = {
        org_id: orgId,
        pg_version: values.version,
        ...size,
        ...(suspend_timeout_seconds === 0 ? {} : { default_endpoint_settings: { suspend_timeout_seconds } }),
        ...(name === '' ? {} : { name }),
      };
      return api<CreateProjectReply>('POST', '/projects', { body: { project } });
    },
    refresh: [['projects']],
    onDone: ({ project }) => navigate({ to: '/projects/$projectId', params: { projectId: project.id } }),
  });
  return (
    <FormDialog title="New project" submit="Create project" form={form} onClose={onClose}>
      <TextField label="Name" {...form.field('name')} maxLength={256} autoFocus placeholder="my-app" />
      <SelectField
        label="Postgres version"
        value={String(form.values.version)}
        choices={versions.map((major) => ({ value: String(major), text: `Postgres ${major}` }))}
        onChange={(value) => form.set({ version: Number(value) })}
      />
      <SizingFields sizing={form.values.sizing} onChange={(sizing) => form.set({ sizing })} />
    </FormDialog>
  );
}
