/** When snapshots of a branch are taken by themselves. The form has one rule; more can be set over the API. */
import { useQuery } from '@tanstack/react-query';
import { api, at } from '../api/client.ts';
import type { Branch, GetSnapshotScheduleReply } from '../api/generated.ts';
import { scheduleQuery } from '../api/queries.ts';
import { useForm } from '../forms/use-form.ts';
import { FormDialog } from '../ui/dialog.tsx';
import { SelectField } from '../ui/field.tsx';
import { duration } from '../ui/format.ts';

type Item = GetSnapshotScheduleReply['schedule'][number];

const weekdays = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];

export function scheduleText({ frequency, hour = 0, day = 1, month = 1, retention_seconds }: Item): string {
  const time = frequency === 'hourly' ? '' : ` at ${String(hour).padStart(2, '0')}:00 UTC`;
  const days: Partial<Record<Item['frequency'], string>> = {
    weekly: ` on ${weekdays[day - 1]}`,
    monthly: ` on day ${day}`,
    yearly: ` on day ${day} of month ${month}`,
  };
  const kept = retention_seconds === undefined ? '' : `, kept for ${duration(retention_seconds)}`;
  return `One is taken ${frequency}${days[frequency] ?? ''}${time}${kept}`;
}

const numbers = (from: number, until: number) =>
  Array.from({ length: until - from + 1 }, (_, index) => ({ value: String(from + index), text: String(from + index) }));

const frequencies = [
  { value: '', text: 'Never' },
  { value: 'hourly', text: 'Every hour' },
  { value: 'daily', text: 'Every day' },
  { value: 'weekly', text: 'Every week' },
  { value: 'monthly', text: 'Every month' },
  { value: 'yearly', text: 'Every year' },
];

const daySeconds = 86_400;
const retentions = [
  { value: '', text: 'Forever' },
  { value: String(daySeconds), text: '1 day' },
  { value: String(7 * daySeconds), text: '7 days' },
  { value: String(35 * daySeconds), text: '35 days' },
  { value: String(365 * daySeconds), text: '365 days' },
];

interface ScheduleProps {
  readonly branch: Branch;
  readonly onClose: () => void;
}

export function ScheduleDialog({ branch, onClose }: ScheduleProps) {
  const { data } = useQuery(scheduleQuery(branch.project_id, branch.id));
  return data === undefined ? null : <ScheduleForm branch={branch} current={data.schedule} onClose={onClose} />;
}

function ScheduleForm({ branch, current, onClose }: ScheduleProps & { readonly current: readonly Item[] }) {
  const [first] = current;
  const form = useForm({
    initial: {
      frequency: String(first?.frequency ?? ''),
      hour: String(first?.hour ?? 0),
      day: String(first?.day ?? 1),
      month: String(first?.month ?? 1),
      retention: String(first?.retention_seconds ?? (first === undefined ? 7 * daySeconds : '')),
    },
    send: (values) =>
      api<object>('PUT', at`/projects/${branch.project_id}/branches/${branch.id}/backup_schedule`, {
        body: { schedule: itemsOf(values) },
      }),
    refresh: [['project', branch.project_id]],
    done: 'Saved.',
    onDone: onClose,
  });
  const { frequency, retention } = form.values;
  const isKnown = retentions.some(({ value }) => value === retention);
  const kept = isKnown ? retentions : [...retentions, { value: retention, text: `${retention} seconds` }];
  return (
    <FormDialog title={`Snapshots of ${branch.name}`} submit="Save" form={form} onClose={onClose}>
      {current.length > 1 && <p>It has {current.length} rules, which this one replaces.</p>}
      <SelectField label="Frequency" {...form.field('frequency')} choices={frequencies} />
      {usesField(frequency, 'month') && <SelectField label="Month" {...form.field('month')} choices={numbers(1, 12)} />}
      {frequency === 'weekly' && (
        <SelectField
          label="On"
          {...form.field('day')}
          choices={weekdays.map((text, index) => ({ value: String(index + 1), text }))}
        />
      )}
      {usesField(frequency, 'day') && frequency !== 'weekly' && (
        <SelectField label="Day of the month" {...form.field('day')} choices={numbers(1, 31)} />
      )}
      {usesField(frequency, 'hour') && (
        <SelectField label="Hour (UTC)" {...form.field('hour')} choices={numbers(0, 23)} />
      )}
      {frequency !== '' && <SelectField label="Keep each" {...form.field('retention')} choices={kept} />}
    </FormDialog>
  );
}

const fieldsOf: Readonly<Record<string, readonly string[]>> = {
  daily: ['hour'],
  weekly: ['hour', 'day'],
  monthly: ['hour', 'day'],
  yearly: ['hour', 'day', 'month'],
};

const usesField = (frequency: string, field: string) => fieldsOf[frequency]?.includes(field) ?? false;

type Values = Readonly<Record<'frequency' | 'hour' | 'day' | 'month' | 'retention', string>>;

function itemsOf({ frequency, retention, ...times }: Values): object[] {
  if (frequency === '') return [];
  const used = Object.entries(times).filter(([field]) => usesField(frequency, field));
  const when = Object.fromEntries(used.map(([field, value]) => [field, Number(value)]));
  return [{ frequency, ...when, ...(retention !== '' && { retention_seconds: Number(retention) }) }];
}
