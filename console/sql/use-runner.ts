/** Runs the statements of a text one after another, and keeps what came of each. */
import { useRef, useState } from 'react';
import { isRefusedWrite, runScript, runSql, SqlError, type SqlResult } from '../api/sql.ts';
import type { Target } from '../target/target.tsx';
import { type PlanNode, readPlan } from './plan-view.tsx';
import type { Statement } from './split.ts';

export type Outcome =
  | { readonly kind: 'rows'; readonly statement: Statement; readonly result: SqlResult; readonly ms: number }
  | { readonly kind: 'plan'; readonly statement: Statement; readonly plan: PlanNode }
  | { readonly kind: 'error'; readonly statement: Statement; readonly error: Error };

export interface Runner {
  readonly outcomes: readonly Outcome[];
  readonly isRunning: boolean;
  /** Set while a write to a protected branch waits for a yes. */
  readonly asking: Statement | null;
  /** A text with many statements in it; `from` is where it begins in the editor. */
  run(chosen: Statement, mode: 'run' | 'explain'): Promise<void>;
  answer(isAllowed: boolean): void;
  cancel(): void;
}

export function useRunner(target: Target): Runner {
  const [outcomes, setOutcomes] = useState<readonly Outcome[]>([]);
  const [isRunning, setRunning] = useState(false);
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
    if (!target.branch.protected) return work(false);
    try {
      return await work(true);
    } catch (error) {
      if (!isRefusedWrite(error)) throw error;
      if (!(await ask(statement))) throw new Error('Not run: the branch is protected.');
      return work(false);
    }
  };

  const outcomeOf = async (statement: Statement, mode: 'run' | 'explain', signal: AbortSignal): Promise<Outcome> => {
    try {
      if (mode === 'explain') {
        const explained = await runSql(target.uri, `${explainPrefix}${statement.text}`, { readOnly: true, signal });
        return { kind: 'plan', statement, plan: readPlan(explained.rows[0]?.[0] ?? '[]') };
      }
      const startedAt = performance.now();
      const result = await runGuarded(statement, (readOnly) =>
        runSql(target.uri, statement.text, { readOnly, signal }),
      );
      return { kind: 'rows', statement, result, ms: performance.now() - startedAt };
    } catch (error) {
      return { kind: 'error', statement, error: toError(error, mode) };
    }
  };

  /** A transaction, whose statements share one session: all results come together, or the error of one of them. */
  const outcomesOf = async (group: readonly Statement[], signal: AbortSignal): Promise<Outcome[]> => {
    const [first] = group;
    if (first === undefined) return [];
    try {
      const startedAt = performance.now();
      const whole = { text: group.map(({ text }) => text).join(';\n'), from: first.from };
      const queries = group.map(({ text }) => text);
      const results = await runGuarded(whole, (readOnly) => runScript(target.uri, queries, { readOnly, signal }));
      const ms = performance.now() - startedAt;
      return results.map((result, at) => ({ kind: 'rows', statement: group[at] ?? first, result, ms }));
    } catch (error) {
      const statement = group[error instanceof SqlError ? error.index : 0] ?? first;
      return [{ kind: 'error', statement, error: toError(error, 'run') }];
    }
  };

  const run: Runner['run'] = async (chosen, mode) => {
    aborting.current = new AbortController();
    const { signal } = aborting.current;
    setRunning(true);
    setOutcomes([]);
    try {
      // With the editor's parser, which pages that run nothing need not load.
      const { groupTransactions, splitStatements } = await import('./split.ts');
      const statements = splitStatements(chosen.text).map(({ text, from }) => ({ text, from: chosen.from + from }));
      const groups = mode === 'run' ? groupTransactions(statements) : statements.map((statement) => [statement]);
      for (const group of groups) {
        const [only] = group;
        const isAlone = only !== undefined && group.length === 1;
        const added = isAlone ? [await outcomeOf(only, mode, signal)] : await outcomesOf(group, signal);
        setOutcomes((before) => [...before, ...added]);
        if (added.some(({ kind }) => kind === 'error')) break;
      }
    } finally {
      setRunning(false);
    }
  };

  return {
    outcomes,
    isRunning,
    asking,
    run,
    answer: (isAllowed) => {
      setAsking(null);
      answering.current(isAllowed);
    },
    cancel: () => aborting.current.abort(),
  };
}

const explainPrefix = 'explain (format json) ';

function toError(error: unknown, mode: 'run' | 'explain'): Error {
  if (error instanceof DOMException) return new Error('Cancelled.');
  if (!(error instanceof SqlError) || mode === 'run' || error.position === null)
    return error instanceof Error ? error : new Error(String(error));
  // Postgres counts from the beginning of what was sent, which is the prefix.
  const { message, code, detail, hint, position } = error;
  return new SqlError({ message, code, detail, hint, position: String(position - explainPrefix.length) });
}
