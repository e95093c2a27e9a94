/** Runs the statements of a text one after another, and keeps what came of each. */
import { useRef, useState } from 'react';
import { loadScript } from '../api/load-script.ts';
import { isRefusedWrite, runScript, runSqlOfAnySize, SqlError, type SqlResult } from '../api/sql.ts';
import type { Target } from '../target/target.tsx';
import { notify } from '../ui/notices.ts';
import { type Plan, readPlan } from './plan.ts';
import type { Statement } from './split.ts';

interface Ran {
  readonly statement: Statement;
  /** Of the whole transaction for a statement of one. */
  readonly ms: number;
  readonly at: Date;
}

export type RowsOutcome = Ran & {
  readonly kind: 'rows';
  readonly result: SqlResult;
  /** How many rows were asked for; 0 for all. */
  readonly maxRows: number;
  readonly isInTransaction: boolean;
};

export type Outcome =
  | RowsOutcome
  | (Ran & { readonly kind: 'plan'; readonly plan: Plan })
  | (Ran & { readonly kind: 'error'; readonly error: Error });

export type Mode = 'run' | 'explain' | 'analyze';

export interface Runner {
  readonly outcomes: readonly Outcome[];
  /** When the run began; null while nothing runs. */
  readonly runningSince: number | null;
  /** Set while a write to a protected branch waits for a yes. */
  readonly asking: Statement | null;
  /** A text with many statements in it; `from` is where it begins in the editor. */
  run(chosen: Statement, mode: Mode, maxRows: number): Promise<void>;
  /** Runs a statement once more, for ten times as many rows. */
  loadMore(outcome: RowsOutcome): Promise<void>;
  answer(isAllowed: boolean): void;
  cancel(): void;
}

export function useRunner(target: Target): Runner {
  const [outcomes, setOutcomes] = useState<readonly Outcome[]>([]);
  const [runningSince, setRunningSince] = useState<number | null>(null);
  const [asking, setAsking] = useState<Statement | null>(null);
  const aborting = useRef(new AbortController());
  const answering = useRef<(isAllowed: boolean) => void>(() => {});

  const ask = (statement: Statement) =>
    new Promise<boolean>((resolve) => {
      answering.current = resolve;
      setAsking(statement);
    });

  /** On a protected branch Postgres itself is asked first whether the statement writes. */
  const runGuarded = async <T>(statement: Statement, work: (readOnly: boolean) => Promise<T>): Promise<T> => {
    if (!target.branch.protected || target.moment !== undefined) return work(false);
    try {
      return await work(true);
    } catch (error) {
      if (!isRefusedWrite(error)) throw error;
      if (!(await ask(statement))) throw new Error('Not run: the branch is protected.');
      return work(false);
    }
  };

  const guardedRun: GuardedRun = (statement, queries, maxRows) =>
    runGuarded(statement, async (readOnly) => {
      const options = { readOnly, maxRows: fetched(maxRows), signal: aborting.current.signal };
      const [only] = queries;
      if (queries.length > 1 || only === undefined) return runScript(target.uri, queries, options);
      return [await runSqlOfAnySize(target.uri, only, options)];
    });

  /** Shows that something runs, until it does not. */
  const whileRunning = async (work: () => Promise<void>) => {
    aborting.current = new AbortController();
    setRunningSince(Date.now());
    try {
      await work();
    } finally {
      setRunningSince(null);
    }
  };

  return {
    outcomes,
    runningSince,
    asking,
    run: (chosen, mode, maxRows) =>
      whileRunning(async () => {
        setOutcomes([]);
        // With the editor's parser, which pages that run nothing need not load.
        const { groupTransactions, splitStatements } = await loadScript(() => import('./split.ts'));
        const statements = splitStatements(chosen.text).map(({ text, from }) => ({ text, from: chosen.from + from }));
        const groups = mode === 'run' ? groupTransactions(statements) : statements.map((statement) => [statement]);
        for (const group of groups) {
          const added = await (mode === 'run'
            ? runGroup(guardedRun, group, maxRows)
            : explain(guardedRun, group, mode));
          setOutcomes((before) => [...before, ...added]);
          if (added.some(({ kind }) => kind === 'error')) break;
        }
      }),
    loadMore: (outcome) =>
      whileRunning(async () => {
        const more = await rerun(target.uri, outcome, aborting.current.signal);
        if (more !== null) setOutcomes((before) => before.map((one) => (one === outcome ? more : one)));
      }),
    answer: (isAllowed) => {
      setAsking(null);
      answering.current(isAllowed);
    },
    cancel: () => aborting.current.abort(),
  };
}

type GuardedRun = (statement: Statement, queries: readonly string[], maxRows: number) => Promise<SqlResult[]>;

/** One more than is shown tells whether there are more. */
const fetched = (maxRows: number) => (maxRows === 0 ? 0 : maxRows + 1);

function cut(result: SqlResult, maxRows: number): SqlResult {
  if (maxRows === 0 || result.rows.length <= maxRows) return result;
  return { ...result, hasMore: true, rows: result.rows.slice(0, maxRows) };
}

/** A statement, or a transaction: then all results come together, or the error of one of them. */
async function runGroup(run: GuardedRun, group: readonly Statement[], maxRows: number): Promise<Outcome[]> {
  const [first] = group;
  if (first === undefined) return [];
  const at = new Date();
  const startedAt = performance.now();
  const isInTransaction = group.length > 1;
  try {
    const whole = { text: group.map(({ text }) => text).join(';\n'), from: first.from };
    const results = await run(
      whole,
      group.map(({ text }) => text),
      maxRows,
    );
    const ms = performance.now() - startedAt;
    return results.map((result, place) => {
      const statement = group[place] ?? first;
      return { kind: 'rows', statement, result: cut(result, maxRows), ms, at, maxRows, isInTransaction };
    });
  } catch (error) {
    const statement = group[error instanceof SqlError ? error.index : 0] ?? first;
    return [{ kind: 'error', statement, error: toError(error, 0), ms: performance.now() - startedAt, at }];
  }
}

const explainPrefixes = {
  explain: 'explain (format json) ',
  analyze: 'explain (analyze, buffers, format json) ',
} as const;

/** In a transaction that is rolled back: ANALYZE carries out what it measures. */
async function explain(run: GuardedRun, [statement]: readonly Statement[], mode: 'explain' | 'analyze') {
  if (statement === undefined) return [];
  const prefix = explainPrefixes[mode];
  const at = new Date();
  const startedAt = performance.now();
  try {
    const results = await run(statement, ['begin', `${prefix}${statement.text}`, 'rollback'], 0);
    const plan = readPlan(results[1]?.rows[0]?.[0] ?? '[]');
    return [{ kind: 'plan', statement, plan, ms: performance.now() - startedAt, at }] satisfies Outcome[];
  } catch (error) {
    const ms = performance.now() - startedAt;
    return [{ kind: 'error', statement, error: toError(error, prefix.length), ms, at }] satisfies Outcome[];
  }
}

const moreFactor = 10;

/** Without the right to write: a statement that has written must not do it twice. Null if it failed. */
async function rerun(uri: string, outcome: RowsOutcome, signal: AbortSignal): Promise<RowsOutcome | null> {
  const { statement } = outcome;
  const maxRows = outcome.maxRows * moreFactor;
  const at = new Date();
  const startedAt = performance.now();
  try {
    const result = await runSqlOfAnySize(uri, statement.text, { readOnly: true, maxRows: fetched(maxRows), signal });
    return { ...outcome, result: cut(result, maxRows), maxRows, at, ms: performance.now() - startedAt };
  } catch (error) {
    const isWrite = isRefusedWrite(error);
    notify('bad', isWrite ? 'The statement writes, so it is not run a second time.' : toError(error, 0).message);
    return null;
  }
}

/** Postgres counts from the beginning of what was sent, which may be a prefix. */
function toError(error: unknown, prefixLength: number): Error {
  if (error instanceof DOMException) return new Error('Cancelled.');
  if (!(error instanceof SqlError) || error.position === null) {
    return error instanceof Error ? error : new Error(String(error));
  }
  const { message, code, detail, hint, position } = error;
  return new SqlError({ message, code, detail, hint, position: String(position - prefixLength) });
}
