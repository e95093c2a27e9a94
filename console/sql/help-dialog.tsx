/** What the keyboard does in the SQL editor and in the grid. */
import { Dialog } from '../ui/dialog.tsx';

const command = navigator.platform.startsWith('Mac') ? '⌘' : 'Ctrl';

const keys: readonly (readonly [string, string, readonly (readonly [string, string])[]])[] = [
  [
    'editor',
    'In the editor',
    [
      [`${command} Enter`, 'Run the selection, or everything'],
      [`${command} Shift Enter`, 'Run the statement at the cursor'],
      ['Alt Shift F', 'Format'],
      [`${command} Space`, 'Complete'],
      [`${command} /`, 'Comment or uncomment'],
      [`${command} F`, 'Search'],
      ['Escape, then Tab', 'Leave the editor'],
    ],
  ],
  [
    'grid',
    'In the grid',
    [
      ['Arrows, Home, End', 'Move; with Shift, select'],
      [`${command} A`, 'Select everything'],
      [`${command} C`, 'Copy the selection'],
      ['Enter', 'View the value; in the head, sort'],
      ['Shift Enter', 'Select the row'],
      ['Shift F10', 'Menu of the cell or column'],
    ],
  ],
];

export function HelpDialog({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Keyboard" onClose={onClose} wide>
      <div className="dialog-body key-help">
        {keys.map(([id, title, list]) => (
          <section key={id}>
            <h3>{title}</h3>
            <dl className="facts">
              {list.map(([combination, effect]) => (
                <div key={combination}>
                  <dt>
                    <kbd>{combination}</kbd>
                  </dt>
                  <dd>{effect}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
