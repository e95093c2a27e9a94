/** The text of the SQL editor: highlighting, completion, and marks where Postgres found an error. */
import { PostgreSQL, sql } from '@codemirror/lang-sql';
import { type Diagnostic, setDiagnostics } from '@codemirror/lint';
import { Compartment, Prec } from '@codemirror/state';
import { keymap, placeholder } from '@codemirror/view';
import { basicSetup, EditorView } from 'codemirror';
import { useEffect, useRef } from 'react';
import type { Table } from './catalog.ts';

export interface EditorProps {
  readonly value: string;
  readonly tables: readonly Table[];
  readonly error: { readonly from: number; readonly message: string } | null;
  readonly onChange: (value: string) => void;
  /** With what is selected, or null for the whole text. */
  readonly onRun: (selection: string | null) => void;
}

const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? '';

export function Editor(props: EditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const language = useRef(new Compartment());

  useEffect(() => {
    if (host.current === null) return;
    const run = (editor: EditorView) => {
      const { from, to } = editor.state.selection.main;
      latest.current.onRun(from === to ? null : editor.state.sliceDoc(from, to));
      return true;
    };
    const made = new EditorView({
      parent: host.current,
      doc: latest.current.value,
      extensions: [
        EditorView.cspNonce.of(nonce),
        Prec.highest(keymap.of([{ key: 'Mod-Enter', run }])),
        basicSetup,
        placeholder('select now();'),
        language.current.of(languageOf(latest.current.tables)),
        EditorView.contentAttributes.of({ 'aria-label': 'SQL' }),
        EditorView.lineWrapping,
        EditorView.updateListener.of((update) => {
          if (update.docChanged) latest.current.onChange(update.state.doc.toString());
        }),
      ],
    });
    view.current = made;
    made.focus();
    return () => made.destroy();
  }, []);

  useEffect(() => {
    const editor = view.current;
    if (editor === null || editor.state.doc.toString() === props.value) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: props.value } });
  }, [props.value]);

  useEffect(() => {
    view.current?.dispatch({ effects: language.current.reconfigure(languageOf(props.tables)) });
  }, [props.tables]);

  useEffect(() => {
    const editor = view.current;
    if (editor !== null) editor.dispatch(setDiagnostics(editor.state, marks(props.error, editor.state.doc.length)));
  }, [props.error]);

  return <div className="editor" ref={host} />;
}

function languageOf(tables: readonly Table[]) {
  const schema: Record<string, Record<string, string[]>> = {};
  for (const table of tables) {
    const known = schema[table.schema] ?? {};
    schema[table.schema] = known;
    known[table.name] = [...table.columns];
  }
  return sql({ dialect: PostgreSQL, schema, defaultSchema: 'public' });
}

function marks(error: EditorProps['error'], length: number): Diagnostic[] {
  if (error === null) return [];
  const from = Math.min(error.from, length);
  return [{ from, to: Math.min(from + 1, length), severity: 'error', message: error.message }];
}
