/** How long the history of a project's branches is kept, and what it takes now. */
import { useQueries, useQuery } from '@tanstack/react-query';
import { api, at } from '../api/client.ts';
import type { Project } from '../api/generated.ts';
import { branchesQuery, historyQuery } from '../api/queries.ts';
import { useForm } from '../forms/use-form.ts';
import { Card } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { SelectField } from '../ui/field.tsx';
import { Form } from '../ui/form.tsx';
import { bytes, duration } from '../ui/format.ts';

const hour = 3_600;
const offered = [0, hour, 6 * hour, 24 * hour, 7 * 24 * hour, 14 * 24 * hour, 30 * 24 * hour];
/** Each is asked for by itself; the sum of more is not shown. */
const branchesMax = 50;

export function HistoryRetention({ project }: { readonly project: Project }) {
  const kept = project.history_retention_seconds;
  const form = useForm({
    initial: { seconds: String(kept) },
    send: ({ seconds }) =>
      api<object>('PATCH', at`/projects/${project.id}`, {
        body: { project: { history_retention_seconds: Number(seconds) } },
      }),
    refresh: [['project', project.id]],
    done: 'Saved.',
  });
  const { seconds } = form.values;
  const choices = [...new Set([...offered, kept])].sort((a, b) => a - b);
  return (
    <Card title="History">
      <Form form={form} className="stack">
        <p className="hint">
          Any moment that is kept can become a branch or be restored. <Cost projectId={project.id} />
        </p>
        <SelectField
          label="Kept for"
          hint="Less gives the older moments of all branches up at once, for good; more fills as time passes."
          choices={choices.map((value) => ({ value: String(value), text: value === 0 ? 'Nothing' : duration(value) }))}
          {...form.field('seconds')}
        />
        <Button type="submit" busy={form.isBusy} disabled={seconds === String(kept)}>
          Save history
        </Button>
      </Form>
    </Card>
  );
}

function Cost({ projectId }: { readonly projectId: string }) {
  const branches = useQuery(branchesQuery(projectId)).data ?? [];
  const asked = branches.length <= branchesMax ? branches : [];
  const histories = useQueries({ queries: asked.map(({ id }) => historyQuery(projectId, id)) });
  const found = histories.flatMap(({ data }) => (data === undefined ? [] : [data]));
  if (found.length === 0 || found.length < branches.length) return null;
  const total = found.reduce((sum, { log_bytes, base_bytes }) => sum + log_bytes + base_bytes, 0);
  return <>It takes {bytes(total)} now.</>;
}
