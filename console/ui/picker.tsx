/** A field to type in and the list of what fits below it: the arrow keys choose, Enter takes. */
import { Fragment, type KeyboardEvent, type ReactNode, useId, useLayoutEffect, useRef, useState } from 'react';
import { groupBy } from './grouped.ts';
import { type Choosable, ranked } from './ranking.ts';

export interface PickerItem extends Choosable {
  /** Items of one group stand together. */
  readonly group?: string;
  /** Before the title. */
  readonly mark?: ReactNode;
  readonly isCurrent?: boolean;
  readonly onSelect: () => void;
}

interface PickerProps {
  readonly label: string;
  readonly items: readonly PickerItem[];
  /** Called before what was chosen is done. */
  readonly onDone: () => void;
  /** How many of each group are shown before anything is typed; all without it. */
  readonly groupMax?: number;
}

/** A person looks at the first few, and types more letters for others. */
const shownMax = 60;

export function Picker({ label, items, onDone, groupMax }: PickerProps) {
  const id = useId();
  const [words, setWords] = useState('');
  const [chosen, setChosen] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const shown = words.trim() === '' ? firstOf(items, groupMax) : grouped(ranked(items, words, shownMax));
  const active = Math.min(chosen, shown.length - 1);
  useLayoutEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  });
  const take = (item: PickerItem | undefined) => {
    if (item === undefined) return;
    onDone();
    item.onSelect();
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && shown.length > 0) {
      event.preventDefault();
      setChosen((active + step + shown.length) % shown.length);
    } else if (event.key === 'Enter') {
      event.preventDefault();
      take(shown[active]);
    }
  };
  return (
    <div className="picker">
      <input
        className="picker-field"
        type="text"
        role="combobox"
        aria-label={label}
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={shown[active] === undefined ? undefined : `${id}-${active}`}
        autoComplete="off"
        spellCheck={false}
        placeholder={label}
        value={words}
        onChange={(event) => {
          setWords(event.target.value);
          setChosen(0);
        }}
        onKeyDown={press}
      />
      <div className="picker-list" id={`${id}-list`} role="listbox" aria-label={label} ref={list} tabIndex={-1}>
        {shown.map((item, index) => (
          <Fragment key={item.id}>
            {item.group !== undefined && item.group !== shown[index - 1]?.group && (
              <p className="picker-group" role="presentation">
                {item.group}
              </p>
            )}
            {/* biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keyboard. */}
            <div
              id={`${id}-${index}`}
              role="option"
              className="picker-item"
              aria-selected={index === active}
              tabIndex={-1}
              onPointerMove={() => setChosen(index)}
              onClick={() => take(item)}
            >
              {item.mark}
              <span className="picker-title">{item.title}</span>
              {item.hint !== undefined && <span className="picker-hint">{item.hint}</span>}
              {item.isCurrent === true && <span className="hint">here</span>}
            </div>
          </Fragment>
        ))}
      </div>
      {shown.length === 0 && <p className="picker-empty hint">No matches.</p>}
    </div>
  );
}

/** Groups in the order of their best items. */
const grouped = (items: readonly PickerItem[]) => [...groupBy(items, ({ group }) => group).values()].flat();

function firstOf(items: readonly PickerItem[], groupMax = shownMax): readonly PickerItem[] {
  const groups = [...groupBy(items, ({ group }) => group).values()];
  return groups.flatMap((group) => group.slice(0, groupMax));
}
