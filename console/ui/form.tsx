/** A form of the page, and the line that says why it could not be sent. */
import type { ReactNode } from 'react';

/** What a form needs to know of the work behind it; `useForm` and `useConfirm` make one. */
export interface Submission {
  readonly isBusy: boolean;
  /** Why it failed the last time. */
  readonly error: Error | null;
  readonly submit: () => void;
}

interface FormProps {
  readonly form: Submission;
  /** Something is missing yet. */
  readonly disabled?: boolean;
  readonly className?: string;
  readonly children: ReactNode;
}

export function Form({ form, disabled = false, className, children }: FormProps) {
  return (
    <form
      className={className}
      onSubmit={(event) => {
        event.preventDefault();
        if (!form.isBusy && !disabled) form.submit();
      }}
    >
      {children}
    </form>
  );
}

export function FailureLine({ error }: { readonly error: Error | null }) {
  if (error === null) return null;
  return (
    <p className="failure-line" role="alert">
      {error.message}
    </p>
  );
}
