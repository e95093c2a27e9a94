/** Makes an API key of one of the three kinds. */
import { useQuery } from '@tanstack/react-query';
import { api, at } from '../api/client.ts';
import type { ApiKeyCreated, Organization } from '../api/generated.ts';
import { projectsQuery } from '../api/queries.ts';
import { useForm } from '../forms/use-form.ts';
import { FormDialog } from '../ui/dialog.tsx';
import { SelectField, TextField } from '../ui/field.tsx';

const kinds = [
  { value: 'personal', text: 'Personal: all that you reach' },
  { value: 'organization', text: 'Organization: all its projects' },
  { value: 'project', text: 'Project: one project, without deleting it' },
] as const;

interface CreateKeyProps {
  /** Only a person's key makes further keys of that person. */
  readonly isPersonal: boolean;
  readonly organizations: readonly Organization[];
  readonly onClose: () => void;
  readonly onMade: (key: ApiKeyCreated) => void;
}

export function CreateKey({ isPersonal, organizations, onClose, onMade }: CreateKeyProps) {
  // They may come after the dialog was opened.
  const orgOf = (chosen: string) => (chosen === '' ? (organizations[0]?.id ?? '') : chosen);
  const projectOf = (chosen: string) => (chosen === '' ? (projects[0]?.id ?? '') : chosen);
  const form = useForm({
    initial: { name: '', kind: isPersonal ? 'personal' : 'organization', org: '', project: '' },
    send: (values) => {
      const path = values.kind === 'personal' ? '/api_keys' : at`/organizations/${orgOf(values.org)}/api_keys`;
      const body = {
        key_name: values.name.trim(),
        ...(values.kind === 'project' ? { project_id: projectOf(values.project) } : {}),
      };
      return api<ApiKeyCreated>('POST', path, { body });
    },
    refresh: [['keys']],
    onDone: onMade,
  });
  const { name, kind } = form.values;
  const org = orgOf(form.values.org);
  const projects = useQuery({ ...projectsQuery(org, ''), enabled: org !== '' }).data ?? [];
  const projectId = projectOf(form.values.project);
  return (
    <FormDialog
      title="New API key"
      submit="Create key"
      form={form}
      disabled={name.trim() === '' || (kind === 'project' && projectId === '')}
      onClose={onClose}
    >
      <TextField label="Name" {...form.field('name')} maxLength={64} autoFocus placeholder="deploy" />
      <SelectField
        label="Kind"
        {...form.field('kind')}
        choices={kinds.filter(({ value }) => isPersonal || value !== 'personal')}
      />
      {kind !== 'personal' && organizations.length > 1 && (
        <SelectField
          label="Organization"
          value={org}
          choices={organizations.map((one) => ({ value: one.id, text: one.name }))}
          onChange={(value) => form.set({ org: value })}
        />
      )}
      {kind === 'project' && (
        <SelectField
          label="Project"
          value={projectId}
          choices={projects.map((one) => ({ value: one.id, text: one.name }))}
          onChange={(value) => form.set({ project: value })}
        />
      )}
    </FormDialog>
  );
}
