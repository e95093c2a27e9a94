/** A button with something below it that is no menu, such as a list with a search. */
import { type ReactNode, useId, useLayoutEffect, useRef, useState } from 'react';

interface PopoverButtonProps {
  readonly label: string;
  readonly className?: string;
  /** On the button. */
  readonly text: ReactNode;
  readonly children: (close: () => void) => ReactNode;
}

const margin = 8;

export function PopoverButton({ label, className, text, children }: PopoverButtonProps) {
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  return (
    <>
      <button
        ref={button}
        type="button"
        className={className}
        aria-label={label}
        aria-haspopup="dialog"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={() => setOpen(!isOpen)}
      >
        {text}
      </button>
      {isOpen && (
        <Popover id={id} label={label} under={button.current} onClose={() => setOpen(false)}>
          {children}
        </Popover>
      )}
    </>
  );
}

interface PopoverProps {
  readonly id: string;
  readonly label: string;
  readonly under: HTMLElement | null;
  readonly onClose: () => void;
  readonly children: PopoverButtonProps['children'];
}

function Popover({ id, label, under, onClose, children }: PopoverProps) {
  const element = useRef<HTMLDivElement>(null);
  const close = useRef(onClose);
  close.current = onClose;
  useLayoutEffect(() => {
    const popover = element.current;
    if (popover === null) return;
    popover.showPopover();
    const { left = 0, bottom = 0 } = under?.getBoundingClientRect() ?? {};
    const { width } = popover.getBoundingClientRect();
    popover.style.left = `${Math.max(margin, Math.min(left, innerWidth - width - margin))}px`;
    popover.style.top = `${bottom + 4}px`;
    popover.querySelector('input')?.focus();
    const onToggle = (event: ToggleEvent) => {
      if (event.newState === 'closed') close.current();
    };
    popover.addEventListener('toggle', onToggle);
    return () => popover.removeEventListener('toggle', onToggle);
  }, [under]);
  return (
    <div ref={element} id={id} popover="auto" className="popover" role="dialog" aria-label={label}>
      {/* By the browser, which gives the focus back to the button. */}
      {children(() => element.current?.hidePopover())}
    </div>
  );
}
