/** The SQL editor: runs statements on any branch and shows rows, plans and errors. */
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useMemo, useRef, useState } from 'react';
import { SqlError } from '../api/sql.ts';
import { readTables, type Table } from '../sql/catalog.ts';
import { addToHistory, readHistory } from '../sql/history.ts';
import { PlanView } from '../sql/plan-view.tsx';
import { ResultGrid } from '../sql/result-grid.tsx';
import type { Statement } from '../sql/split.ts';
import { type Outcome, type Runner, useRunner } from '../sql/use-runner.ts';
import { type Target, WithTarget } from '../target/target.tsx';
import { Ago, PageHead } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/dialog.tsx';
import { milliseconds } from '../ui/format.ts';
import { Icon } from '../ui/icons.tsx';
import { Loading } from '../ui/states.tsx';

const Editor = lazy(async () => ({ default: (await import('../sql/editor.tsx')).Editor }));

export function SqlPage() {
  const { projectId } = useParams({ from: '/projects/$projectId/sql' });
  const search = useSearch({ from: '/projects/$projectId/sql' });
  const navigate = useNavigate({ from: '/projects/$projectId/sql' });
  return (
    <>
      <title>SQL editor · Catnap</title>
      <PageHead
        title="SQL editor"
        lead="Runs as the owner of the database. Each statement is on its own, and so is each transaction from BEGIN to COMMIT; SET ends with it."
      />
      <WithTarget projectId={projectId} search={search} onChange={(next) => navigate({ search: next })}>
        {(target) => <Workbench projectId={projectId} target={target} />}
      </WithTarget>
    </>
  );
}

function Workbench({ projectId, target }: { readonly projectId: string; readonly target: Target }) {
  const [text, setText] = useDraft(projectId);
  const [history, setHistory] = useState(() => readHistory(projectId));
  const runner = useRunner(target);
  const [hasTyped, setTyped] = useState(false);
  const tables = useTables(target, hasTyped, runner.outcomes);
  // Set once: then it stays with its word while the text changes, and goes with it.
  const mark = useMemo(() => markOf(runner.outcomes), [runner.outcomes]);
  const run = (chosen: Statement, mode: 'run' | 'explain') => {
    if (chosen.text.trim() === '' || runner.isRunning) return;
    if (mode === 'run') setHistory(addToHistory(projectId, chosen.text));
    void runner.run(chosen, mode);
  };
  const whole = { text, from: 0 };
  const type = (next: string) => {
    setTyped(true);
    setText(next);
  };
  return (
    <div className="stack">
      <section className="card workbench" aria-label="Editor">
        <Suspense fallback={<Loading lines={5} />}>
          <Editor
            value={text}
            tables={tables}
            error={mark}
            onChange={type}
            onRun={(selection) => run(selection ?? whole, 'run')}
          />
        </Suspense>
        <div className="row workbench-bar">
          <Button tone="primary" busy={runner.isRunning} onClick={() => run(whole, 'run')}>
            <Icon name="play" /> Run
          </Button>
          <Button disabled={runner.isRunning} onClick={() => run(whole, 'explain')}>
            Explain
          </Button>
          {runner.isRunning && <Button onClick={runner.cancel}>Cancel</Button>}
          <span className="hint">Ctrl + Enter runs the selection, or everything.</span>
        </div>
      </section>
      <Outcomes runner={runner} />
      {history.length > 0 && (
        <details className="card history">
          <summary>History ({history.length})</summary>
          <ul>
            {history.map((entry) => (
              <li key={entry.query}>
                <button type="button" onClick={() => setText(entry.query)}>
                  <code>{entry.query}</code>
                </button>
                <span className="hint">
                  <Ago at={entry.at} />
                </span>
              </li>
            ))}
          </ul>
        </details>
      )}
      {runner.asking !== null && (
        <ConfirmDialog
          title={`Write to the protected branch ${target.branch.name}?`}
          submit="Run it"
          form={{ isBusy: false, error: null, submit: () => runner.answer(true) }}
          onClose={() => runner.answer(false)}
        >
          <pre className="code-block">{runner.asking.text}</pre>
        </ConfirmDialog>
      )}
    </div>
  );
}

/** What is being written is still there after a reload, in this tab. */
function useDraft(projectId: string) {
  const key = `catnap-draft-${projectId}`;
  const [text, setText] = useState(() => sessionStorage.getItem(key) ?? '');
  const change = (next: string) => {
    setText(next);
    sessionStorage.setItem(key, next);
  };
  return [text, change] as const;
}

/**
 * Asked for when somebody begins to type, as merely opening the page wakes no compute; and again after statements that
 * may have made a table or changed one.
 */
function useTables(target: Target, isWanted: boolean, outcomes: readonly Outcome[]): readonly Table[] {
  const [tables, setTables] = useState<readonly Table[]>(noTables);
  const change = outcomes.findLast(isChange);
  const asked = useRef<{ uri: string; change: Outcome | undefined }>({ uri: '', change: undefined });
  useEffect(() => {
    const isKnown = asked.current.uri === target.uri && (change === undefined || asked.current.change === change);
    if (!isWanted || isKnown) return;
    asked.current = { uri: target.uri, change };
    // Completion is a help; without it the editor works as well.
    readTables(target.uri).then(setTables, () => {});
  }, [isWanted, target.uri, change]);
  return tables;
}

const noTables: readonly Table[] = [];
const isChange = ({ kind, statement }: Outcome) => kind === 'rows' && /^(create|alter|drop)\b/i.test(statement.text);

function markOf(outcomes: readonly Outcome[]) {
  const last = outcomes.at(-1);
  if (last?.kind !== 'error' || !(last.error instanceof SqlError) || last.error.position === null) return null;
  // Postgres counts whole characters, the browser halves of some.
  const before = [...last.statement.text].slice(0, last.error.position - 1).join('');
  return { from: last.statement.from + before.length, message: last.error.message };
}

function Outcomes({ runner }: { readonly runner: Runner }) {
  return (
    <>
      {runner.outcomes.map((outcome, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are only ever added to.
        <section key={index} className="card outcome" aria-label={`Result ${index + 1}`}>
          <code className="outcome-query">{outcome.statement.text}</code>
          {outcome.kind === 'rows' && (
            <>
              <ResultGrid result={outcome.result} />
              <p className="hint">{milliseconds(outcome.ms)}</p>
            </>
          )}
          {outcome.kind === 'plan' && <PlanView plan={outcome.plan} />}
          {outcome.kind === 'error' && <SqlFailure error={outcome.error} />}
        </section>
      ))}
    </>
  );
}

function SqlFailure({ error }: { readonly error: Error }) {
  return (
    <div className="failure" role="alert">
      <p className="failure-title">{error.message}</p>
      {error instanceof SqlError && (
        <>
          {error.detail !== null && <p>{error.detail}</p>}
          {error.hint !== null && <p>{error.hint}</p>}
          <p className="hint">SQLSTATE {error.code}</p>
        </>
      )}
    </div>
  );
}
