/** Makes an API key of one of the three kinds. */
import { useQuery } from '@tanstack/react-query';
import { api, at } from '../api/client.ts';
import type { ApiKey, ApiKeyCreated, Organization } from '../api/generated.ts';
import { projectsQuery } from '../api/queries.ts';
import { useForm } from '../forms/use-form.ts';
import { FormDialog } from '../ui/dialog.tsx';
import { SelectField, TextField } from '../ui/field.tsx';

const kinds = [
  { value: 'personal', text: 'Personal: all that you reach' },
  { value: 'organization', text: 'Organization: all its projects' },
  { value: 'project', text: 'Project: one project, without deleting it' },
] as const;

/** What a key may do with what it reaches, in a word or two. */
export const scopeNames: Readonly<Record<ApiKey['scope'], string>> = {
  full: 'everything',
  read_only: 'read, no SQL',
  branches: 'branches',
  sql: 'SQL alone',
};

const scopes = [
  { value: 'full', text: 'Everything' },
  { value: 'read_only', text: 'Read, but neither secrets nor rows' },
  { value: 'branches', text: 'Make branches; change all but default and protected ones' },
  { value: 'sql', text: 'Get connection strings, and nothing else' },
] as const;

const lifetimes = [
  { value: '', text: 'Never' },
  { value: '1', text: 'In a day' },
  { value: '30', text: 'In 30 days' },
  { value: '365', text: 'In a year' },
] as const;

const dayMs = 24 * 60 * 60 * 1_000;
const afterDays = (days: string) => new Date(Date.now() + Number(days) * dayMs).toISOString();

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
    initial: {
      name: '',
      kind: isPersonal ? 'personal' : 'organization',
      org: '',
      project: '',
      scope: 'full',
      days: '',
    },
    send: (values) => {
      const path = values.kind === 'personal' ? '/api_keys' : at`/organizations/${orgOf(values.org)}/api_keys`;
      const body = {
        key_name: values.name.trim(),
        ...(values.kind === 'project' ? { project_id: projectOf(values.project) } : {}),
        ...(values.scope === 'full' ? {} : { scope: values.scope }),
        ...(values.days === '' ? {} : { expires_at: afterDays(values.days) }),
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
      <SelectField label="May" {...form.field('scope')} choices={scopes} />
      <SelectField label="Expires" {...form.field('days')} choices={lifetimes} />
    </FormDialog>
  );
}
