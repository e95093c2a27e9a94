/** The text of the SQL editor: highlighting, completion, and marks where Postgres found an error. */
import { closeCompletion } from '@codemirror/autocomplete';
import { PostgreSQL, sql } from '@codemirror/lang-sql';
import { type Diagnostic, forEachDiagnostic, setDiagnostics } from '@codemirror/lint';
import { Compartment, type EditorState, Prec } from '@codemirror/state';
import { keymap, placeholder, type ViewUpdate } from '@codemirror/view';
import { basicSetup, EditorView } from 'codemirror';
import { useEffect, useRef } from 'react';
import type { Table } from './catalog.ts';
import { completionsIn } from './completions.ts';
import { sqlColours } from './highlight.ts';
import { type Statement, splitStatements } from './split.ts';

export interface EditorProps {
  readonly value: string;
  readonly tables: readonly Table[];
  readonly error: { readonly from: number; readonly message: string } | null;
  readonly onChange: (value: string) => void;
  /** With what is selected, or null for the whole text. */
  readonly onRun: (selection: Statement | null) => void;
  /** Called whenever the selection changes; null where nothing is selected. */
  readonly onSelect: (selection: Statement | null) => void;
  readonly onFormat: () => void;
}

const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? '';

export function Editor(props: EditorProps) {
  const frame = useRef<HTMLDivElement>(null);
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const language = useRef(new Compartment());

  useEffect(() => {
    if (frame.current === null || host.current === null) return;
    const run = (editor: EditorView) => {
      closeCompletion(editor);
      latest.current.onRun(selectionOf(editor.state));
      return true;
    };
    const runHere = (editor: EditorView) => {
      closeCompletion(editor);
      const { head } = editor.state.selection.main;
      const here = splitStatements(editor.state.doc.toString()).findLast(({ from }) => from <= head);
      if (here !== undefined) latest.current.onRun(here);
      return true;
    };
    const format = () => {
      latest.current.onFormat();
      return true;
    };
    const made = new EditorView({
      parent: host.current,
      doc: latest.current.value,
      extensions: [
        EditorView.cspNonce.of(nonce),
        Prec.highest(
          keymap.of([
            { key: 'Mod-Enter', run },
            { key: 'Mod-Shift-Enter', run: runHere },
            { key: 'Alt-Shift-f', run: format },
          ]),
        ),
        sqlColours,
        basicSetup,
        completionsIn(frame.current),
        placeholder('Write SQL here'),
        language.current.of(languageOf(latest.current.tables)),
        EditorView.contentAttributes.of({ 'aria-label': 'SQL' }),
        EditorView.lineWrapping,
        EditorView.updateListener.of((update) => {
          if (update.selectionSet || update.docChanged) latest.current.onSelect(selectionOf(update.state));
          if (!update.docChanged) return;
          dropTouchedMark(update);
          latest.current.onChange(update.state.doc.toString());
        }),
      ],
    });
    view.current = made;
    // The arrow keys walk between the tabs, and a tab that is shown for the first time must not end that walk.
    if (document.activeElement?.role !== 'tab') made.focus();
    return () => made.destroy();
  }, []);

  useEffect(() => {
    const editor = view.current;
    if (editor === null || editor.state.doc.toString() === props.value) return;
    const changes = { from: 0, to: editor.state.doc.length, insert: props.value };
    editor.dispatch({ changes, selection: { anchor: props.value.length } });
    // It was formatted, or comes from the history: the next key is for the text, and not for the button.
    editor.focus();
  }, [props.value]);

  useEffect(() => {
    view.current?.dispatch({ effects: language.current.reconfigure(languageOf(props.tables)) });
  }, [props.tables]);

  useEffect(() => {
    const editor = view.current;
    if (editor !== null) editor.dispatch(setDiagnostics(editor.state, marks(props.error, editor.state.doc.toString())));
  }, [props.error]);

  return (
    <div className="editor" ref={frame}>
      <div className="editor-text" ref={host} />
    </div>
  );
}

function selectionOf(state: EditorState): Statement | null {
  const { from, to } = state.selection.main;
  return from === to ? null : { text: state.sliceDoc(from, to), from };
}

function languageOf(tables: readonly Table[]) {
  const schema: Record<string, Record<string, string[]>> = {};
  for (const table of tables) {
    const known = schema[table.schema] ?? {};
    schema[table.schema] = known;
    known[table.name] = [...table.columns];
  }
  return [
    sql({ dialect: PostgreSQL, schema, defaultSchema: 'public' }),
    PostgreSQL.language.data.of({ autocomplete: (at: TypedAt) => completeColumn(at, tables) }),
  ];
}

/** What the editor knows of where somebody types. */
interface TypedAt {
  readonly state: EditorState;
  matchBefore(word: RegExp): { readonly from: number } | null;
}

/** Columns by their names alone, of the tables that the text speaks of; behind a table's name they come anyway. */
function completeColumn(at: TypedAt, tables: readonly Table[]) {
  const word = at.matchBefore(/\w+/);
  if (word === null || at.state.sliceDoc(word.from - 1, word.from) === '.') return null;
  const words = new Set(at.state.doc.toString().match(/\w+/g));
  const columns = tables.filter(({ name }) => words.has(name)).flatMap((table) => table.columns);
  const options = [...new Set(columns)].map((label) => ({ label, type: 'property', boost: 1 }));
  return { from: word.from, options, validFor: /^\w*$/ };
}

/** A mark moves with its word, and is gone once somebody changes that word. */
function dropTouchedMark({ view, startState, changes }: ViewUpdate): void {
  let isTouched = false;
  forEachDiagnostic(startState, (_, from, to) => {
    isTouched ||= changes.touchesRange(from, to) !== false;
  });
  if (isTouched) view.dispatch(setDiagnostics(view.state, []));
}

/** The word at the position, or the one character that is there. */
function marks(error: EditorProps['error'], text: string): Diagnostic[] {
  if (error === null) return [];
  const from = Math.min(error.from, text.length);
  const length = /^[\w$]+/.exec(text.slice(from))?.[0].length ?? 1;
  return [{ from, to: Math.min(from + length, text.length), severity: 'error', message: error.message }];
}
