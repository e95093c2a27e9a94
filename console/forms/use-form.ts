/** What every form and every confirmation does: hold what was typed, send it once, show what went wrong. */
import { useState } from 'react';
import type { Submission } from '../ui/form.tsx';
import { type ActionOptions, useAction } from './action.ts';

interface FormOptions<Values, Result> extends ActionOptions<Result> {
  readonly initial: Values;
  readonly send: (values: Values) => Promise<Result>;
  /** Empties the form when it was sent, for one that stays on the page. */
  readonly resets?: boolean;
}

type KeyOf<Values, Value> = { [Key in keyof Values]: Values[Key] extends Value ? Key : never }[keyof Values];

export interface FormValues<Values> extends Submission {
  readonly values: Values;
  readonly set: (change: Partial<Values>) => void;
  /** For a field with a value: `<TextField {...form.field('name')} />`. */
  readonly field: <Key extends keyof Values>(
    key: Key,
  ) => { readonly value: Values[Key]; readonly onChange: (value: Values[Key]) => void };
  /** For a field that is checked or not. */
  readonly check: <Key extends KeyOf<Values, boolean>>(
    key: Key,
  ) => { readonly checked: boolean; readonly onChange: (checked: boolean) => void };
}

/** Failures stay inside the form, so that nothing that was typed is lost, unless `showsFailure` is false. */
export function useForm<Values extends object, Result>(options: FormOptions<Values, Result>): FormValues<Values> {
  const { initial, send, resets = false, onDone, showsFailure = true, ...rest } = options;
  const [values, setValues] = useState(initial);
  const set = (change: Partial<Values>) => setValues((before) => ({ ...before, ...change }));
  const { isPending, error, mutate } = useAction(send, {
    ...rest,
    showsFailure,
    onDone: (result) => {
      if (resets) setValues(initial);
      onDone?.(result);
    },
  });
  return {
    values,
    set,
    field: (key) => ({ value: values[key], onChange: (value) => set(changeOf(key, value)) }),
    check: (key) => ({ checked: values[key] === true, onChange: (checked) => set(changeOf(key, checked)) }),
    isBusy: isPending,
    error: showsFailure ? error : null,
    submit: () => mutate(values),
  };
}

/** The compiler does not see that an object with one computed key is a part of the whole. */
function changeOf<Values>(key: keyof Values, value: unknown): Partial<Values> {
  return { [key]: value } as Partial<Values>;
}

interface ConfirmOptions<Result> extends Omit<ActionOptions<Result>, 'showsFailure'> {
  readonly send: () => Promise<Result>;
}

/** A form without fields: a question whose yes does something. */
export function useConfirm<Result>({ send, ...options }: ConfirmOptions<Result>): Submission {
  const { isPending, error, mutate } = useAction(send, { ...options, showsFailure: true });
  return { isBusy: isPending, error, submit: () => mutate() };
}
