/** The past of a branch: a line of its time, a moment on it, and what can be made of that moment. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Branch, GetProjectBranchHistoryReply } from '../api/generated.ts';
import { historyQuery, snapshotsQuery } from '../api/queries.ts';
import { localText, momentOf, momentWord } from '../target/moment.ts';
import { Card } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { TextField } from '../ui/field.tsx';
import { bytes, count, duration } from '../ui/format.ts';
import { Loaded } from '../ui/states.tsx';
import { marksOf, secondsOf } from './marks.ts';
import { BranchAt, RestoreTo } from './moment-dialogs.tsx';
import { TimeLine } from './time-line.tsx';

type History = GetProjectBranchHistoryReply['history'];

interface BranchHistoryProps {
  readonly branch: Branch;
  readonly branches: readonly Branch[];
}

export function BranchHistory({ branch, branches }: BranchHistoryProps) {
  const history = useQuery(historyQuery(branch.project_id, branch.id));
  return (
    <Card title="History">
      <Loaded query={history}>
        {(found) => {
          const { from, until, retention_seconds: kept } = found;
          if (kept === 0) {
            return <p className="hint">The project keeps no history: its window under Settings is 0.</p>;
          }
          if (from === undefined || until === undefined) {
            return <p className="hint">Nothing is kept yet: it begins shortly.</p>;
          }
          const span = [Date.parse(from), Date.parse(until)] as const;
          return <Moments branch={branch} branches={branches} history={found} span={span} />;
        }}
      </Loaded>
    </Card>
  );
}

interface MomentsProps extends BranchHistoryProps {
  readonly history: History;
  readonly span: readonly [number, number];
}

const minuteMs = 60_000;
const backs = [
  { text: '5 min ago', ms: 5 * minuteMs },
  { text: '1 h ago', ms: 60 * minuteMs },
  { text: '6 h ago', ms: 360 * minuteMs },
] as const;

function Moments({ branch, branches, history, span }: MomentsProps) {
  const snapshots = useQuery(snapshotsQuery(branch.project_id)).data ?? [];
  const [from, until] = span;
  const [first, last] = secondsOf(span);
  // Until somebody picks one, it is the latest that there is.
  const [picked, setPicked] = useState<string | null>(null);
  const [dialog, setDialog] = useState<'branch' | 'restore' | null>(null);
  const text = picked ?? localText(until);
  const moment = momentOf(text);
  const at = Date.parse(moment.timestamp ?? '');
  const value = Number.isNaN(at) ? last : Math.max(first, Math.min(last, at));
  const pick = (next: number) => setPicked(localText(next));
  const isEmpty = text.trim() === '';
  const close = () => setDialog(null);
  const look = {
    className: isEmpty ? 'button disabled' : 'button',
    params: { projectId: branch.project_id },
    search: { branch: branch.id, at: momentWord(moment) },
  };
  return (
    <div className="stack">
      <TimeLine
        span={span}
        gaps={history.gaps}
        marks={marksOf(branch, branches, snapshots, span)}
        value={value}
        onChange={pick}
      />
      <div className="moment-bar">
        <TextField label="Moment" value={text} onChange={setPicked} maxLength={64} />
        <span className="row">
          {backs
            .filter(({ ms }) => until - ms > from)
            .map(({ text: back, ms }) => (
              <Button key={back} small tone="quiet" onClick={() => pick(until - ms)}>
                {back}
              </Button>
            ))}
        </span>
        <span className="row moment-actions">
          <Link to="/projects/$projectId/tables" {...look}>
            Look at it
          </Link>
          <Link to="/projects/$projectId/sql" {...look}>
            Query it
          </Link>
          <Button disabled={isEmpty} onClick={() => setDialog('branch')}>
            Branch from it
          </Button>
          <Button disabled={isEmpty} onClick={() => setDialog('restore')}>
            Restore to it
          </Button>
        </span>
      </div>
      <p className="hint">
        A time in your time zone, or an LSN such as {history.until_lsn ?? '0/1DE2850'}. Kept for{' '}
        {duration(history.retention_seconds)}; takes {bytes(history.log_bytes)} of log and {bytes(history.base_bytes)}{' '}
        in {count(history.base_count, 'base image')}.
      </p>
      {dialog === 'branch' && <BranchAt branch={branch} text={text} onClose={close} />}
      {dialog === 'restore' && <RestoreTo branch={branch} text={text} onClose={close} />}
    </div>
  );
}
