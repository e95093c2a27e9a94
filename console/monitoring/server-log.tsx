/** The log of a compute's server, awake or not: the last entries, the newest on top, searched where they are. */
import { queryOptions, useQuery } from '@tanstack/react-query';
import { useDeferredValue, useState } from 'react';
import { api, at, withQuery } from '../api/client.ts';
import type { Endpoint, ListProjectEndpointLogsReply } from '../api/generated.ts';
import { Button } from '../ui/button.tsx';
import { SelectField, TextField } from '../ui/field.tsx';
import { count } from '../ui/format.ts';
import { Empty, Loaded } from '../ui/states.tsx';
import { isBad, type LogFilter, matching } from './log-filter.ts';

/** As many as the API gives. */
const entriesMax = 1_000;
const everyMs = 10_000;

const logQuery = ({ project_id, id }: Endpoint) =>
  queryOptions({
    queryKey: ['log', id],
    queryFn: async () => {
      const path = withQuery(at`/projects/${project_id}/endpoints/${id}/logs`, { limit: entriesMax });
      return (await api<ListProjectEndpointLogsReply>('GET', path)).logs;
    },
    refetchInterval: everyMs,
  });

const kinds = [
  { value: '', text: 'Everything' },
  { value: 'bad', text: 'Fatal errors' },
  { value: 'session', text: 'Sessions' },
  { value: 'server', text: 'The server itself' },
] as const;

export function ServerLog({ endpoint }: { readonly endpoint: Endpoint }) {
  const log = useQuery(logQuery(endpoint));
  const [filter, setFilter] = useState<LogFilter>({ words: '', kind: '' });
  const words = useDeferredValue(filter.words);
  return (
    <>
      <div className="view-bar">
        <TextField
          label="Search"
          type="search"
          value={filter.words}
          onChange={(value) => setFilter({ ...filter, words: value })}
        />
        <SelectField
          label="Show"
          value={filter.kind}
          choices={kinds}
          onChange={(kind) => setFilter({ ...filter, kind: kind as LogFilter['kind'] })}
        />
        <Button busy={log.isFetching} onClick={() => log.refetch()}>
          Refresh
        </Button>
      </div>
      <Loaded query={log} lines={8}>
        {(entries) => {
          const shown = matching(entries, { ...filter, words });
          return (
            <>
              <p className="hint log-count" role="status">
                {shown.length === entries.length
                  ? count(entries.length, 'entry', 'entries')
                  : `${shown.length.toLocaleString('en')} of ${entries.length.toLocaleString('en')} entries`}
                {entries.length === entriesMax && ', the last ones'}. The newest is on top; reading wakes nothing.
              </p>
              {shown.length === 0 ? <Empty title="No entry matches." /> : <Entries entries={shown} />}
            </>
          );
        }}
      </Loaded>
    </>
  );
}

type Entry = ListProjectEndpointLogsReply['logs'][number];

const time = new Intl.DateTimeFormat('en', {
  month: 'short',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});

function Entries({ entries }: { readonly entries: readonly Entry[] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must reach it.
    <section className="log" aria-label="Log" tabIndex={0}>
      <ol>
        {entries.map((entry, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: entries have no name, and two may be alike.
          <li key={index} className={isBad(entry) ? 'bad' : undefined}>
            <time dateTime={entry.at}>{entry.at === undefined ? '' : time.format(new Date(entry.at))}</time>
            <span className="log-level">{entry.level ?? entry.source}</span>
            <span className="log-pid">{entry.pid ?? ''}</span>
            <span className="log-text">{entry.message}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}
