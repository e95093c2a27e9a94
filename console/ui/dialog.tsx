/** Dialogs, by the browser's own element: it keeps the focus inside, and Escape closes it. */
import { type ReactNode, useId, useLayoutEffect, useRef, useState } from 'react';
import { Button } from './button.tsx';
import { TextField } from './field.tsx';
import { FailureLine, Form, type Submission } from './form.tsx';
import { Icon } from './icons.tsx';

const firstField = '.dialog-body :is(input, select, textarea)';
/** Of the buttons below, the first is the one that changes nothing. */
const firstAnswer = 'footer button:enabled';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
  readonly wide?: boolean;
}

export function Dialog({ title, onClose, children, wide = false }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  // Before it leaves the page, so that closing it gives the focus back to what opened it.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    // The browser would choose the cross that closes. What only tells takes the focus itself, and arrows scroll it.
    const start = dialog?.querySelector<HTMLElement>(firstField) ?? dialog?.querySelector<HTMLElement>(firstAnswer);
    (start ?? dialog)?.focus();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={element}
      className={wide ? 'dialog wide' : 'dialog'}
      aria-labelledby={titleId}
      tabIndex={-1}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header>
        <h2 id={titleId}>{title}</h2>
        <Button tone="quiet" small aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </Button>
      </header>
      {children}
    </dialog>
  );
}

interface FormDialogProps extends DialogProps {
  /** Words on the button. */
  readonly submit: string;
  readonly form: Submission;
  readonly tone?: 'primary' | 'danger';
  readonly disabled?: boolean;
}

/** A dialog with one thing to do. A failure is shown inside, so that nothing that was typed is lost. */
export function FormDialog(props: FormDialogProps) {
  const { title, onClose, children, submit, form, tone = 'primary', disabled = false, wide = false } = props;
  return (
    <Dialog title={title} onClose={onClose} wide={wide}>
      <Form form={form} disabled={disabled}>
        <div className="dialog-body">{children}</div>
        <FailureLine error={form.error} />
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" tone={tone} busy={form.isBusy} disabled={disabled}>
            {submit}
          </Button>
        </footer>
      </Form>
    </Dialog>
  );
}

interface ConfirmDialogProps extends Omit<FormDialogProps, 'disabled' | 'tone'> {
  /** What must be typed first, for what cannot be undone. */
  readonly typed?: string;
}

export function ConfirmDialog({ typed, children, ...rest }: ConfirmDialogProps) {
  const [text, setText] = useState('');
  return (
    <FormDialog {...rest} tone="danger" disabled={typed !== undefined && text !== typed}>
      {children}
      {typed !== undefined && (
        <TextField label={`Type “${typed}” to confirm`} value={text} onChange={setText} autoFocus />
      )}
    </FormDialog>
  );
}
