/** The list of completions: inside the landmark of its editor, and within reach of the keyboard. */
import { closeCompletion } from '@codemirror/autocomplete';
import { EditorView, runScopeHandlers, tooltips } from '@codemirror/view';

/** Shows completions and other tooltips in `parent`, which must not clip what is larger than itself. */
export const completionsIn = (parent: HTMLElement) => [
  tooltips({ parent }),
  EditorView.updateListener.of(({ view }) => {
    const list = parent.querySelector<HTMLElement>('.cm-tooltip-autocomplete > ul');
    if (list !== null) makeReachable(list, view);
  }),
  EditorView.domEventHandlers({
    // One that is still being put together would open when somebody has gone on to a button.
    blur: (event, view) => {
      if (!(event.relatedTarget instanceof Node && parent.contains(event.relatedTarget))) closeCompletion(view);
    },
  }),
];

/**
 * The arrow keys choose from the list while the editor keeps the focus, and Tab leads from the editor into the list,
 * because it scrolls. CodeMirror makes the list anew as somebody types, and has no setting for its attributes.
 */
function makeReachable(list: HTMLElement, view: EditorView): void {
  list.tabIndex = 0;
  const chosen = list.querySelector('[aria-selected]');
  if (chosen === null) list.removeAttribute('aria-activedescendant');
  else list.setAttribute('aria-activedescendant', chosen.id);
  list.onkeydown = (event) => {
    if (keysOfTheList.has(event.key)) return;
    // Every other key is meant for the editor, and so is the letter that follows this event.
    view.focus();
    if (runScopeHandlers(view, event, 'editor')) event.preventDefault();
  };
}

/** Tab goes on to what comes after the list; the others only begin a combination of keys. */
const keysOfTheList: ReadonlySet<string> = new Set(['Tab', 'Shift', 'Control', 'Alt', 'Meta']);
