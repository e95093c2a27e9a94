/** The past of a branch: what is kept of it, and a form to branch from a moment of it or to go back to one. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, at } from '../api/client.ts';
import type { Branch, GetProjectBranchHistoryReply } from '../api/generated.ts';
import { historyQuery } from '../api/queries.ts';
import { useForm } from '../forms/use-form.ts';
import { Ago, Card } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { SelectField, TextField } from '../ui/field.tsx';
import { bytes, count, duration, fullTime } from '../ui/format.ts';
import { Loaded } from '../ui/states.tsx';

type History = GetProjectBranchHistoryReply['history'];

export function BranchHistory({ branch }: { readonly branch: Branch }) {
  const [isAsking, setAsking] = useState(false);
  const history = useQuery(historyQuery(branch.project_id, branch.id));
  return (
    <Card title="History">
      <Loaded query={history}>
        {(found) => (
          <div className="stack">
            <Window history={found} />
            <div className="row">
              <Button onClick={() => setAsking(true)} disabled={found.from === undefined}>
                Go back to a moment
              </Button>
            </div>
            {isAsking && <Moment branch={branch} history={found} onClose={() => setAsking(false)} />}
          </div>
        )}
      </Loaded>
    </Card>
  );
}

function Window({ history }: { readonly history: History }) {
  const { from, until, gaps, retention_seconds: kept } = history;
  if (kept === 0) return <p className="hint">The project keeps no history (history_retention_seconds is 0).</p>;
  if (from === undefined || until === undefined) return <p className="hint">Nothing is kept yet: it begins shortly.</p>;
  return (
    <dl className="facts">
      <dt>From</dt>
      <dd>
        <Ago at={from} /> <span className="soft">(kept for {duration(kept)})</span>
      </dd>
      <dt>Until</dt>
      <dd>
        <Ago at={until} />
      </dd>
      <dt>Takes</dt>
      <dd>
        {bytes(history.log_bytes)} of log, {bytes(history.base_bytes)} in {count(history.base_count, 'base image')}
      </dd>
      {gaps.length > 0 && (
        <>
          <dt>Lost</dt>
          <dd>
            {gaps.map((gap) => (
              <div key={gap.from_lsn}>
                {fullTime(gap.from)} to {fullTime(gap.until)}
              </div>
            ))}
          </dd>
        </>
      )}
    </dl>
  );
}

const isLsn = (text: string) => text.includes('/');

/** A time as people write it is one of this browser; the API wants to know the zone. */
function momentOf(text: string): { readonly lsn?: string; readonly timestamp?: string } {
  const given = text.trim();
  if (isLsn(given)) return { lsn: given };
  const time = new Date(given.replace(' ', 'T'));
  return { timestamp: Number.isNaN(time.getTime()) ? given : time.toISOString() };
}

const twoDigits = (value: number) => String(value).padStart(2, '0');

/** In the time of this browser, to the second. */
function localText(iso: string): string {
  const time = new Date(iso);
  const day = [time.getFullYear(), twoDigits(time.getMonth() + 1), twoDigits(time.getDate())].join('-');
  return `${day} ${[time.getHours(), time.getMinutes(), time.getSeconds()].map(twoDigits).join(':')}`;
}

const ways = [
  { value: 'branch', text: 'A new branch' },
  { value: 'restore', text: 'This branch' },
];

interface MomentProps {
  readonly branch: Branch;
  readonly history: History;
  readonly onClose: () => void;
}

function Moment({ branch, history, onClose }: MomentProps) {
  const path = at`/projects/${branch.project_id}/branches`;
  const form = useForm({
    initial: { moment: localText(history.until ?? ''), way: 'branch', name: '' },
    send: ({ moment, way, name }) => {
      const { lsn, timestamp } = momentOf(moment);
      if (way === 'branch') {
        const named = name.trim() === '' ? {} : { name: name.trim() };
        const made = { parent_id: branch.id, parent_lsn: lsn, parent_timestamp: timestamp, ...named };
        return api<object>('POST', path, { body: { branch: made, endpoints: [{ type: 'read_write' }] } });
      }
      const source = { source_branch_id: branch.id, source_lsn: lsn, source_timestamp: timestamp };
      return api<object>('POST', `${path}/${encodeURIComponent(branch.id)}/restore`, {
        body: { ...source, preserve_under_name: name.trim() },
      });
    },
    refresh: [['project', branch.project_id]],
    done: `${branch.name} at that moment is being made.`,
    onDone: onClose,
  });
  const { moment, way, name } = form.values;
  const isRestore = way === 'restore';
  const from = history.from === undefined ? '' : localText(history.from);
  return (
    <FormDialog
      title={`${branch.name} at a moment`}
      submit={isRestore ? 'Restore' : 'Create branch'}
      tone={isRestore ? 'danger' : 'primary'}
      form={form}
      disabled={moment.trim() === '' || (isRestore && name.trim() === '')}
      onClose={onClose}
    >
      <TextField
        label="Moment"
        hint={`A time of this browser since ${from}, or an LSN such as ${history.until_lsn ?? '0/1DE2850'}.`}
        {...form.field('moment')}
        maxLength={64}
        autoFocus
      />
      <SelectField
        label="As it was then becomes"
        hint={
          isRestore
            ? 'Its data, roles and databases go back. Host names stay; connections drop briefly.'
            : 'This branch goes on as it is.'
        }
        {...form.field('way')}
        choices={ways}
      />
      <TextField
        label={isRestore ? 'Keep the present data as a branch named' : 'Name'}
        {...(isRestore ? { hint: 'Needed: nothing of the present is lost.' } : {})}
        {...form.field('name')}
        maxLength={256}
        placeholder={isRestore ? `${branch.name}_old` : 'before-the-mistake'}
      />
    </FormDialog>
  );
}
