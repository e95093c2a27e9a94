/** Makes an API key of one of the three kinds. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useAction } from '../api/action.ts';
import { api, at } from '../api/client.ts';
import { projectsQuery } from '../api/queries.ts';
import type { ApiKeyCreated, Organization } from '../api/types.ts';
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
  const [name, setName] = useState('');
  const [kind, setKind] = useState<string>(isPersonal ? 'personal' : 'organization');
  const [chosenOrg, setOrg] = useState('');
  // They may come after the dialog was opened.
  const org = chosenOrg === '' ? (organizations[0]?.id ?? '') : chosenOrg;
  const [project, setProject] = useState('');
  const projects = useQuery({ ...projectsQuery(org, ''), enabled: org !== '' }).data ?? [];
  const projectId = project === '' ? (projects[0]?.id ?? '') : project;
  const create = useAction(
    (body: object) =>
      kind === 'personal'
        ? api<ApiKeyCreated>('POST', '/api_keys', { body })
        : api<ApiKeyCreated>('POST', at`/organizations/${org}/api_keys`, { body }),
    { refresh: [['keys']], showsFailure: true, onDone: onMade },
  );
  return (
    <FormDialog
      title="New API key"
      submit="Create key"
      busy={create.isPending}
      disabled={name.trim() === '' || (kind === 'project' && projectId === '')}
      error={create.error}
      onSubmit={() =>
        create.mutate({ key_name: name.trim(), ...(kind === 'project' ? { project_id: projectId } : {}) })
      }
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} maxLength={64} autoFocus placeholder="deploy" />
      <SelectField
        label="Kind"
        value={kind}
        choices={kinds.filter(({ value }) => isPersonal || value !== 'personal')}
        onChange={setKind}
      />
      {kind !== 'personal' && organizations.length > 1 && (
        <SelectField
          label="Organization"
          value={org}
          choices={organizations.map((one) => ({ value: one.id, text: one.name }))}
          onChange={setOrg}
        />
      )}
      {kind === 'project' && (
        <SelectField
          label="Project"
          value={projectId}
          choices={projects.map((one) => ({ value: one.id, text: one.name }))}
          onChange={setProject}
        />
      )}
    </FormDialog>
  );
}
