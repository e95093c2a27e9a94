/** Fields of forms: a label, the control, and a line of help. */
import { type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes, useId } from 'react';

interface FieldProps {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly children: (id: string, hintId: string | undefined) => ReactNode;
}

export function Field({ label, hint, children }: FieldProps) {
  const id = useId();
  const hintId = hint === undefined ? undefined : `${id}-hint`;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children(id, hintId)}
      {hint !== undefined && (
        <p className="hint" id={hintId}>
          {hint}
        </p>
      )}
    </div>
  );
}

interface Described {
  readonly label: string;
  readonly hint?: ReactNode;
}

type TextFieldProps = Described &
  Omit<InputHTMLAttributes<HTMLInputElement>, 'onChange' | 'id'> & {
    readonly value: string;
    readonly onChange: (value: string) => void;
  };

export function TextField({ label, hint, onChange, ...rest }: TextFieldProps) {
  return (
    <Field label={label} hint={hint}>
      {(id, hintId) => (
        <input
          autoComplete="off"
          spellCheck={false}
          {...rest}
          className="input"
          id={id}
          aria-describedby={hintId}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

export interface Choice {
  readonly value: string;
  readonly text: string;
}

type SelectFieldProps = Described &
  Omit<SelectHTMLAttributes<HTMLSelectElement>, 'onChange' | 'id'> & {
    readonly value: string;
    readonly choices: readonly Choice[];
    readonly onChange: (value: string) => void;
  };

export function SelectField({ label, hint, choices, onChange, ...rest }: SelectFieldProps) {
  return (
    <Field label={label} hint={hint}>
      {(id, hintId) => (
        <select
          {...rest}
          className="input"
          id={id}
          aria-describedby={hintId}
          onChange={(event) => onChange(event.target.value)}
        >
          {choices.map(({ value, text }) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

interface CheckFieldProps extends Described {
  readonly checked: boolean;
  readonly disabled?: boolean;
  readonly onChange: (checked: boolean) => void;
}

export function CheckField({ label, hint, checked, disabled = false, onChange }: CheckFieldProps) {
  const id = useId();
  return (
    <div className="field check">
      <input
        type="checkbox"
        id={id}
        checked={checked}
        disabled={disabled}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        onChange={(event) => onChange(event.target.checked)}
      />
      <label htmlFor={id}>{label}</label>
      {hint !== undefined && (
        <p className="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

interface SliderFieldProps extends Described {
  /** The only values there are, ascending; the handle rests on one of them. */
  readonly values: readonly number[];
  readonly value: number;
  readonly text: (value: number) => string;
  readonly onChange: (value: number) => void;
}

export function SliderField({ label, hint, values: offered, value, text, onChange }: SliderFieldProps) {
  // What is set already may be more than is offered now; it is shown as it is.
  const values = offered.includes(value) ? offered : [...offered, value].sort((a, b) => a - b);
  const at = values.indexOf(value);
  return (
    <Field label={label} hint={hint}>
      {(id, hintId) => (
        <div className="slider">
          <input
            type="range"
            id={id}
            min={0}
            max={values.length - 1}
            step={1}
            value={at}
            aria-valuetext={text(values[at] ?? value)}
            aria-describedby={hintId}
            onChange={(event) => onChange(values[Number(event.target.value)] ?? value)}
          />
          <output htmlFor={id}>{text(values[at] ?? value)}</output>
        </div>
      )}
    </Field>
  );
}
