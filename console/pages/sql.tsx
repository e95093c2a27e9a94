/** The SQL editor: runs statements on any branch and shows rows, plans and errors. */
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useMemo, useRef, useState } from 'react';
import type { SavedQuery } from '../api/generated.ts';
import { loadScript } from '../api/load-script.ts';
import { SqlError } from '../api/sql.ts';
import { readTables, type Table } from '../sql/catalog.ts';
import { HelpDialog } from '../sql/help-dialog.tsx';
import { addToHistory, readHistory } from '../sql/history.ts';
import { HistoryDialog } from '../sql/history-dialog.tsx';
import { QueryTools, RenameDialog } from '../sql/query-tools.tsx';
import { Results } from '../sql/results.tsx';
import { RunBar } from '../sql/run-bar.tsx';
import { SavedDialog } from '../sql/saved-dialog.tsx';
import type { Statement } from '../sql/split.ts';
import { useQueryTabs, useSavedQueries } from '../sql/use-query-tabs.ts';
import { useRowLimit } from '../sql/use-row-limit.ts';
import { type Mode, type Outcome, useRunner } from '../sql/use-runner.ts';
import { type Target, WithTarget } from '../target/target.tsx';
import { ConfirmDialog } from '../ui/dialog.tsx';
import { notify } from '../ui/notices.ts';
import { SplitPane } from '../ui/split-pane.tsx';
import { Loaded, Loading } from '../ui/states.tsx';
import { Tabs } from '../ui/tabs.tsx';

const Editor = lazy(async () => ({ default: (await loadScript(() => import('../sql/editor.tsx'))).Editor }));

export function SqlPage() {
  const { projectId } = useParams({ from: '/projects/$projectId/sql' });
  const search = useSearch({ from: '/projects/$projectId/sql' });
  const navigate = useNavigate({ from: '/projects/$projectId/sql' });
  return (
    <>
      <title>SQL editor · Catnap</title>
      <WithTarget
        title="SQL editor"
        projectId={projectId}
        search={search}
        onChange={(next) => navigate({ search: next })}
      >
        {(target) => <Workbench projectId={projectId} target={target} />}
      </WithTarget>
    </>
  );
}

function Workbench({ projectId, target }: { readonly projectId: string; readonly target: Target }) {
  const saved = useSavedQueries(projectId);
  return <Loaded query={saved}>{(queries) => <Open projectId={projectId} target={target} queries={queries} />}</Loaded>;
}

interface OpenProps {
  readonly projectId: string;
  readonly target: Target;
  readonly queries: readonly SavedQuery[];
}

/** The tabs. One that was shown stays as it is behind the others, with its results. */
function Open({ projectId, target, queries }: OpenProps) {
  const { tabs, view } = useQueryTabs(projectId, queries);
  const [seen, setSeen] = useState<ReadonlySet<string>>(() => new Set());
  const [shown, setShown] = useState<'saved' | 'rename' | null>(null);
  const current = view.tabs.find(({ key }) => key === view.chosen);
  const close = () => setShown(null);
  const choose = (key: string) => {
    setSeen(new Set(seen).add(view.chosen));
    tabs.choose(key);
  };
  return (
    <>
      <Tabs
        label="Queries"
        tabs={view.tabs.map(({ key, name }) => ({ id: key, text: name }))}
        chosen={view.chosen}
        onChoose={choose}
        tools={
          <QueryTools
            save={view.save}
            onAdd={() => {
              setSeen(new Set(seen).add(view.chosen));
              tabs.add();
            }}
            onRename={() => setShown('rename')}
            onClose={() => void tabs.close(view.chosen)}
            onSaved={() => setShown('saved')}
          />
        }
      >
        {view.tabs
          .filter(({ key }) => key === view.chosen || seen.has(key))
          .map((tab) => (
            <div key={tab.key} className="query-pane" hidden={tab.key !== view.chosen}>
              <QueryPane
                projectId={projectId}
                target={target}
                text={tab.text}
                setText={(text) => tabs.setText(tab.key, text)}
              />
            </div>
          ))}
      </Tabs>
      {shown === 'saved' && (
        <SavedDialog
          projectId={projectId}
          onOpen={(query) => {
            close();
            setSeen(new Set(seen).add(view.chosen));
            tabs.open(query);
          }}
          onRemove={(id) => tabs.remove(id)}
          onClose={close}
        />
      )}
      {shown === 'rename' && current !== undefined && (
        <RenameDialog name={current.name} onRename={(name) => tabs.rename(current.key, name)} onClose={close} />
      )}
    </>
  );
}

interface QueryPaneProps {
  readonly projectId: string;
  readonly target: Target;
  readonly text: string;
  readonly setText: (text: string) => void;
}

function QueryPane({ projectId, target, text, setText }: QueryPaneProps) {
  const [history, setHistory] = useState(() => readHistory(projectId));
  const [shown, setShown] = useState<'history' | 'help' | null>(null);
  const [selection, setSelection] = useState<Statement | null>(null);
  const [limit, setLimit] = useRowLimit();
  const runner = useRunner(target);
  const [hasTyped, setTyped] = useState(false);
  const tables = useTables(target, hasTyped, runner.outcomes);
  // Set once: then it stays with its word while the text changes, and goes with it.
  const mark = useMemo(() => markOf(runner.outcomes), [runner.outcomes]);
  const run = (chosen: Statement, mode: Mode) => {
    if (chosen.text.trim() === '' || runner.runningSince !== null) return;
    if (mode === 'run') setHistory(addToHistory(projectId, chosen.text));
    void runner.run(chosen, mode, limit);
  };
  const whole = { text, from: 0 };
  const type = (next: string) => {
    setTyped(true);
    setText(next);
  };
  const format = () => void formatted(text).then((next) => next !== null && setText(next));
  return (
    <>
      <SplitPane
        name="sql"
        label="Height of the editor"
        top={
          <section className="workbench" aria-label="Editor">
            <Suspense fallback={<Loading lines={5} />}>
              <Editor
                value={text}
                tables={tables}
                error={mark}
                onChange={type}
                onRun={(selected) => run(selected ?? whole, 'run')}
                onSelect={setSelection}
                onFormat={format}
              />
            </Suspense>
            <RunBar
              runner={runner}
              endpoint={target.endpoint}
              isEmpty={text.trim() === ''}
              hasSelection={selection !== null && selection.text.trim() !== ''}
              limit={limit}
              onLimit={setLimit}
              onRun={(mode) => run(selection === null || selection.text.trim() === '' ? whole : selection, mode)}
              onFormat={format}
              onShow={setShown}
            />
          </section>
        }
        bottom={
          <section className="results" aria-label="Results">
            <Results uri={target.uri} runner={runner} />
          </section>
        }
      />
      {shown === 'help' && <HelpDialog onClose={() => setShown(null)} />}
      {shown === 'history' && (
        <HistoryDialog
          entries={history}
          onChoose={(query) => {
            setText(query);
            setShown(null);
          }}
          onClose={() => setShown(null)}
        />
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
    </>
  );
}

/** Null if the text is not understood; then it stays as it is. The formatter is loaded when it is first used. */
async function formatted(text: string): Promise<string | null> {
  try {
    return (await loadScript(() => import('../sql/format.ts'))).formatSql(text);
  } catch {
    notify('bad', 'The text could not be formatted: it has a part that is not understood.');
    return null;
  }
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
