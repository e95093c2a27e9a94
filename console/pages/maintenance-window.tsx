/** When computes that never sleep are restarted for an update. */
import { api, at } from '../api/client.ts';
import type { Project } from '../api/generated.ts';
import { useForm } from '../forms/use-form.ts';
import { Card } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { CheckField, TextField } from '../ui/field.tsx';
import { Form } from '../ui/form.tsx';

const days = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];

export function MaintenanceWindow({ project }: { readonly project: Project }) {
  const given = project.settings?.maintenance_window;
  const form = useForm({
    initial: {
      weekdays: given?.weekdays ?? [],
      start: given?.start_time ?? '06:00',
      end: given?.end_time ?? '07:00',
    },
    send: ({ weekdays, start, end }) => {
      const maintenance_window = { weekdays, start_time: start, end_time: end };
      return api<object>('PATCH', at`/projects/${project.id}`, {
        body: { project: { settings: { maintenance_window } } },
      });
    },
    refresh: [['project', project.id]],
    done: 'Saved.',
  });
  const { weekdays } = form.values;
  const choose = (day: number, isChosen: boolean) => {
    const others = weekdays.filter((other) => other !== day);
    form.set({ weekdays: isChosen ? [...others, day].sort() : others });
  };
  return (
    <Card title="Maintenance window">
      <Form form={form} className="stack">
        <p className="hint">
          A compute that never sleeps is restarted then, once, if an update waits. Others get updates when they wake.
        </p>
        <fieldset className="plain row">
          <legend className="visually-hidden">Days on which it begins</legend>
          {days.map((name, index) => (
            <CheckField
              key={name}
              label={name}
              checked={weekdays.includes(index + 1)}
              onChange={(isChosen) => choose(index + 1, isChosen)}
            />
          ))}
        </fieldset>
        <TextField label="From (UTC)" type="time" {...form.field('start')} required />
        <TextField label="To (UTC)" type="time" {...form.field('end')} required />
        <Button type="submit" busy={form.isBusy} disabled={weekdays.length === 0}>
          Save window
        </Button>
      </Form>
    </Card>
  );
}
