/** What a project may use: the quotas and what is used of them, and why its computes are suspended when one is gone. */
import { Link } from '@tanstack/react-router';
import { api, at } from '../api/client.ts';
import type { Project, ProjectQuota } from '../api/generated.ts';
import { useForm } from '../forms/use-form.ts';
import { Card } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { TextField } from '../ui/field.tsx';
import { Form } from '../ui/form.tsx';
import { bytes, duration, fullTime } from '../ui/format.ts';

type Name = keyof ProjectQuota;

interface QuotaField {
  readonly name: Name;
  readonly label: string;
  readonly hint: (project: Project) => string;
}

const used = (text: string) => `${text} used this month.`;

const quotaFields: readonly QuotaField[] = [
  {
    name: 'active_time_seconds',
    label: 'Time awake, in seconds',
    hint: (project) => used(duration(project.active_time_seconds)),
  },
  {
    name: 'compute_time_seconds',
    label: 'Compute time, in seconds times CU',
    hint: (project) => used(duration(project.compute_time_seconds)),
  },
  {
    name: 'written_data_bytes',
    label: 'Written data, in bytes',
    hint: (project) => used(bytes(project.written_data_bytes)),
  },
  {
    name: 'data_transfer_bytes',
    label: 'Data transfer to clients, in bytes',
    hint: (project) => used(bytes(project.data_transfer_bytes)),
  },
  {
    name: 'logical_size_bytes',
    label: 'Size of each branch, in bytes',
    hint: () => 'Writes to a larger branch are turned off; it can be read and emptied.',
  },
];

type Values = Record<Name, string>;

const shown = (limit: number | undefined) => (limit === undefined || limit === 0 ? '' : String(limit));

function initialValues({ settings }: Project): Values {
  const entries = quotaFields.map(({ name }) => [name, shown(settings?.quota?.[name])]);
  return Object.fromEntries(entries) as Values;
}

/** A `PATCH` replaces all quotas, so those that are left empty are removed. */
function quotaOf(values: Values): ProjectQuota {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, text]) => (text.trim() === '' ? [] : [[name, Number(text)]])),
  );
}

export function Quotas({ project }: { readonly project: Project }) {
  const form = useForm({
    initial: initialValues(project),
    send: (values: Values) =>
      api<object>('PATCH', at`/projects/${project.id}`, {
        body: { project: { settings: { quota: quotaOf(values) } } },
      }),
    refresh: [['project', project.id], ['projects']],
    done: 'Saved.',
    showsFailure: false,
  });
  return (
    <Card title="Quotas">
      <Form form={form} className="stack">
        <QuotaExceeded project={project} />
        <p className="hint">
          Once one of the first four is used up, all computes are suspended until{' '}
          {fullTime(project.consumption_period_end)} or until the quota is raised. Empty is no limit.
        </p>
        {quotaFields.map(({ name, label, hint }) => (
          <TextField
            key={name}
            label={label}
            hint={hint(project)}
            type="number"
            min={0}
            step={1}
            {...form.field(name)}
          />
        ))}
        <Button type="submit" busy={form.isBusy}>
          Save quotas
        </Button>
      </Form>
    </Card>
  );
}

/** Nothing while every quota has something left. */
export function QuotaExceeded({ project, linked = false }: { readonly project: Project; readonly linked?: boolean }) {
  const { quota_exceeded: exceeded } = project;
  if (exceeded === undefined) return null;
  return (
    <div className="failure" role="status">
      <p className="failure-title">A quota is used up</p>
      <p>{`${exceeded.message.charAt(0).toUpperCase()}${exceeded.message.slice(1)}.`}</p>
      {linked && (
        <p>
          <Link to="/projects/$projectId/settings" params={{ projectId: project.id }}>
            Quotas
          </Link>
        </p>
      )}
    </div>
  );
}
