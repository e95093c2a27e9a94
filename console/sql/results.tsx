/** What became of the statements that were run: a tab for each, and one with everything that Postgres said. */
import { useState } from 'react';
import { SqlError } from '../api/sql.ts';
import { DataGrid } from '../grid/data-grid.tsx';
import { Badge } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { bytes, count, milliseconds } from '../ui/format.ts';
import { type Tab, Tabs } from '../ui/tabs.tsx';
import { useResultNames } from './names.ts';
import { PlanView } from './plan-view.tsx';
import { useExport } from './use-export.ts';
import type { Outcome, RowsOutcome, Runner } from './use-runner.ts';

interface ResultsProps {
  readonly uri: string;
  readonly runner: Runner;
}

const messagesId = 'messages';

export function Results({ uri, runner }: ResultsProps) {
  const { outcomes } = runner;
  const [choice, setChoice] = useState<{ readonly of: Outcome | undefined; readonly id: string } | null>(null);
  if (outcomes.length === 0) {
    return <p className="results-empty">{runner.runningSince === null ? 'Results appear here.' : ''}</p>;
  }
  // A choice belongs to the run that it was made in.
  const chosen = choice !== null && choice.of === outcomes[0] ? choice.id : bestOf(outcomes);
  const shown = outcomes[Number(chosen)];
  const notices = outcomes.reduce((sum, outcome) => sum + noticesOf(outcome).length, 0);
  const tabs: Tab[] = [
    ...outcomes.map((outcome, index) => ({
      id: String(index),
      text: tabText(outcome, index, outcomes.length),
      isBad: outcome.kind === 'error',
    })),
    { id: messagesId, text: notices === 0 ? 'Messages' : `Messages (${notices})` },
  ];
  return (
    <Tabs label="Results" tabs={tabs} chosen={chosen} onChoose={(id) => setChoice({ of: outcomes[0], id })}>
      {chosen === messagesId || shown === undefined ? (
        <Messages outcomes={outcomes} />
      ) : (
        <OutcomeView key={chosen} uri={uri} outcome={shown} runner={runner} />
      )}
    </Tabs>
  );
}

/** The error if there is one, otherwise the last rows or plan, otherwise what was said. */
function bestOf(outcomes: readonly Outcome[]): string {
  const last = outcomes.findLastIndex(
    (outcome) => outcome.kind !== 'rows' || outcome.result.fields.length > 0 || outcomes.length === 1,
  );
  return last === -1 ? messagesId : String(last);
}

function tabText(outcome: Outcome, index: number, total: number): string {
  const number = total === 1 ? '' : `${index + 1} `;
  if (outcome.kind === 'error') return `${number}Error`;
  if (outcome.kind === 'plan') return `${number}Plan`;
  return total === 1 ? 'Result' : `${number}${commandOf(outcome)}`;
}

/** The first word of the statement stands in for a tag that never came. */
const commandOf = ({ result, statement }: RowsOutcome) =>
  result.command !== '' ? result.command : (/\w+/.exec(statement.text)?.[0].toUpperCase() ?? '');

const noticesOf = (outcome: Outcome) => (outcome.kind === 'rows' ? (outcome.result.notices ?? []) : []);

interface OutcomeViewProps {
  readonly uri: string;
  readonly outcome: Outcome;
  readonly runner: Runner;
}

function OutcomeView({ uri, outcome, runner }: OutcomeViewProps) {
  if (outcome.kind === 'plan') return <PlanView plan={outcome.plan} />;
  if (outcome.kind === 'error') return <SqlFailure error={outcome.error} ms={outcome.ms} />;
  if (outcome.result.fields.length > 0) return <RowsView uri={uri} outcome={outcome} runner={runner} />;
  return (
    <div className="result-text">
      <p className="result-note" role="status">
        {didText(outcome)}
      </p>
      <p className="hint">{tookText(outcome)}</p>
      <Notices outcome={outcome} />
    </div>
  );
}

/** `INSERT: 2 rows`, `CREATE TABLE`. */
function didText(outcome: RowsOutcome): string {
  const { rowCount, tag = '' } = outcome.result;
  const words = tag.replace(/[ \d]+$/, '') || commandOf(outcome);
  return rowCount === null ? words : `${words}: ${count(rowCount, 'row')}`;
}

/** The results of a transaction come together, so what each statement took is not known. */
function tookText(outcome: Outcome): string {
  const took = milliseconds(outcome.ms);
  return outcome.kind === 'rows' && outcome.isInTransaction ? `${took} for the transaction` : took;
}

interface RowsViewProps {
  readonly uri: string;
  readonly outcome: RowsOutcome;
  readonly runner: Runner;
}

function RowsView({ uri, outcome, runner }: RowsViewProps) {
  const { result, statement, isInTransaction } = outcome;
  const { types, table } = useResultNames(uri, result.fields);
  const { items, received, cancel } = useExport(uri, statement.text, 'result');
  const isCut = result.hasMore === true;
  // Fewer rows than the limit are as much as the page keeps.
  const canLoadMore = isCut && !isInTransaction && result.rows.length === outcome.maxRows;
  return (
    <DataGrid
      label="Result"
      fields={result.fields}
      rows={result.rows}
      typeNames={types}
      note={
        <>
          {isCut ? `The first ${count(result.rows.length, 'row')}` : count(result.rows.length, 'row')} ·{' '}
          {tookText(outcome)}
        </>
      }
      tools={
        <>
          {canLoadMore && (
            <Button small disabled={runner.runningSince !== null} onClick={() => runner.loadMore(outcome)}>
              Load more
            </Button>
          )}
          {received !== null && (
            <Button small onClick={cancel}>
              Exporting {bytes(received)} · Cancel
            </Button>
          )}
        </>
      }
      fileName="result"
      exports={isCut && !isInTransaction ? items : []}
      {...(table === undefined ? {} : { table })}
    />
  );
}

function Messages({ outcomes }: { readonly outcomes: readonly Outcome[] }) {
  return (
    <ol className="messages">
      {outcomes.map((outcome, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are only ever added to.
        <li key={index}>
          <time dateTime={outcome.at.toISOString()}>{clock.format(outcome.at)}</time>
          <code className="message-query">{outcome.statement.text}</code>
          <span className={outcome.kind === 'error' ? 'message-bad' : undefined}>{messageOf(outcome)}</span>
          <span className="hint">{tookText(outcome)}</span>
          <Notices outcome={outcome} />
        </li>
      ))}
    </ol>
  );
}

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });

function messageOf(outcome: Outcome): string {
  if (outcome.kind === 'error') return outcome.error.message;
  if (outcome.kind === 'plan') return 'Plan';
  const { hasMore, rows } = outcome.result;
  return hasMore === true ? `${commandOf(outcome)}: the first ${count(rows.length, 'row')}` : didText(outcome);
}

function Notices({ outcome }: { readonly outcome: Outcome }) {
  return noticesOf(outcome).map(({ severity, message, detail, hint }, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: notices have no other name, and none moves.
    <p key={index} className="message-notice">
      <Badge tone={severity === 'WARNING' ? 'warn' : 'plain'}>{severity}</Badge>{' '}
      {[message, detail, hint].filter((text) => text !== null).join(' · ')}
    </p>
  ));
}

function SqlFailure({ error, ms }: { readonly error: Error; readonly ms: number }) {
  return (
    <div className="failure" role="alert">
      <p className="failure-title">{error.message}</p>
      {error instanceof SqlError && error.detail !== null && <p>{error.detail}</p>}
      {error instanceof SqlError && error.hint !== null && <p>{error.hint}</p>}
      <p className="hint">
        {error instanceof SqlError && error.code !== '' && `SQLSTATE ${error.code} · `}
        {milliseconds(ms)}
      </p>
    </div>
  );
}
