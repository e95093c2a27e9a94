/** Menus, by the browser's own popovers: a click elsewhere or Escape closes one, and the focus goes back. */
import { type KeyboardEvent, type ReactNode, useId, useLayoutEffect, useRef, useState } from 'react';
import { Button, type ButtonProps } from './button.tsx';

export interface MenuItem {
  readonly label: string;
  readonly onSelect: () => void;
  readonly isDisabled?: boolean;
  /** Begins a new group. */
  readonly isApart?: boolean;
  /** Takes something away. */
  readonly isBad?: boolean;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

interface MenuProps {
  readonly label: string;
  readonly items: readonly MenuItem[];
  readonly at: Point;
  readonly onClose: () => void;
}

const margin = 8;

export function Menu({ label, items, at, onClose }: MenuProps) {
  const element = useRef<HTMLDivElement>(null);
  const close = useRef(onClose);
  close.current = onClose;
  useLayoutEffect(() => {
    const menu = element.current;
    if (menu === null) return;
    menu.showPopover();
    const { width, height } = menu.getBoundingClientRect();
    menu.style.left = `${Math.max(margin, Math.min(at.x, innerWidth - width - margin))}px`;
    menu.style.top = `${Math.max(margin, Math.min(at.y, innerHeight - height - margin))}px`;
    itemsIn(menu)[0]?.focus();
    const onToggle = (event: ToggleEvent) => {
      if (event.newState === 'closed') close.current();
    };
    menu.addEventListener('toggle', onToggle);
    return () => menu.removeEventListener('toggle', onToggle);
  }, [at]);
  return (
    <div ref={element} popover="auto" className="menu" role="menu" aria-label={label} tabIndex={-1} onKeyDown={walk}>
      {items.map(({ label: text, onSelect, isDisabled = false, isApart = false, isBad = false }) => (
        <button
          key={text}
          type="button"
          role="menuitem"
          tabIndex={-1}
          className={[...(isApart ? ['apart'] : []), ...(isBad ? ['bad'] : [])].join(' ') || undefined}
          disabled={isDisabled}
          onClick={() => {
            element.current?.hidePopover();
            onSelect();
          }}
        >
          {text}
        </button>
      ))}
    </div>
  );
}

/**
 * For a menu that the right button of the mouse opens. Some browsers report that press at once, and take the release of
 * the button for a click elsewhere, which closes a menu that is open by then.
 */
export function onceReleased({ buttons }: { readonly buttons: number }, open: () => void): void {
  if (buttons === 0) open();
  else addEventListener('pointerup', () => setTimeout(open), { once: true });
}

const itemsIn = (menu: HTMLElement) => [...menu.querySelectorAll<HTMLElement>('[role=menuitem]:enabled')];

function walk(event: KeyboardEvent<HTMLDivElement>): void {
  const items = itemsIn(event.currentTarget);
  const now = items.findIndex((item) => item.matches(':focus'));
  const steps: Readonly<Record<string, number>> = {
    ArrowDown: (now + 1) % items.length,
    ArrowUp: (now - 1 + items.length) % items.length,
    Home: 0,
    End: items.length - 1,
  };
  const next = steps[event.key];
  if (event.key === 'Tab') event.currentTarget.hidePopover();
  // What is below must not move along.
  event.stopPropagation();
  if (next === undefined) return;
  event.preventDefault();
  items[next]?.focus();
}

interface MenuButtonProps extends Omit<ButtonProps, 'onClick'> {
  /** What the menu is of. */
  readonly menu: string;
  readonly items: readonly MenuItem[];
  readonly children: ReactNode;
}

export function MenuButton({ menu, items, children, ...rest }: MenuButtonProps) {
  const [at, setAt] = useState<Point | null>(null);
  const id = useId();
  return (
    <>
      <Button
        {...rest}
        id={id}
        aria-haspopup="menu"
        aria-expanded={at !== null}
        onClick={(event) => {
          const { left, bottom } = event.currentTarget.getBoundingClientRect();
          setAt({ x: left, y: bottom + 4 });
        }}
      >
        {children}
      </Button>
      {at !== null && <Menu label={menu} items={items} at={at} onClose={() => setAt(null)} />}
    </>
  );
}
