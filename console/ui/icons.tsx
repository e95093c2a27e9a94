/** The few pictures there are, drawn with lines in the colour of the text. They say nothing to screen readers. */

const paths = {
  copy: 'M9 9h10v11H9zM5 15V4h10',
  check: 'M5 12.500l4.500 4.500L19 7.500',
  close: 'M6 6l12 12M18 6L6 18',
  menu: 'M4 7h16M4 12h16M4 17h16',
  branch: 'M7 4v16M7 14c0-5 10-2 10-8M17 3.500v3',
  plus: 'M12 5v14M5 12h14',
  play: 'M8 5l11 7-11 7z',
  eye: 'M3 12q9-12 18 0-9 12-18 0zM12 9.500a2.500 2.500 0 1 1 0 5 2.500 2.500 0 0 1 0-5',
  lock: 'M6 11h12v9H6zM8.500 11V8a3.500 3.500 0 0 1 7 0v3',
  chevron: 'M9 6l6 6-6 6',
  up: 'M12 19V5M6 11l6-6 6 6',
  down: 'M12 5v14M6 13l6 6 6-6',
  pin: 'M9 4h6l-1 6 3 3H7l3-3zM12 13v7',
  download: 'M12 4v11M7 10.500l5 5 5-5M5 20h14',
  more: 'M6 12h.01M12 12h.01M18 12h.01',
  switch: 'M8 10l4-4 4 4M8 14l4 4 4-4',
  grid: 'M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z',
  key: 'M4 9.500a4.500 4.500 0 1 1 9 0 4.500 4.500 0 0 1-9 0M12 13l8 8M16 17l2-2',
  building: 'M5 20V4h9v16M14 9h5v11M3 20h18M8 8h3M8 12h3M8 16h3',
  trash: 'M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13',
  info: 'M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18M12 11v5M12 8h.01',
  terminal: 'M4 5h16v14H4zM7.500 9l3 3-3 3M13 15h4',
  table: 'M4 5h16v14H4zM4 10h16M10 10v9',
  pulse: 'M3 12h4l3-7 4 14 3-7h4',
  database:
    'M5 6.500c0-3.300 14-3.300 14 0s-14 3.300-14 0M5 6.500v11c0 3.300 14 3.300 14 0v-11M5 12c0 3.300 14 3.300 14 0',
  shield: 'M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6z',
  list: 'M9 6h11M9 12h11M9 18h11M4.500 6h.01M4.500 12h.01M4.500 18h.01',
  clock: 'M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18M12 7v5l3 2',
  sliders: 'M4 7h9M17 7h3M4 17h3M11 17h9M15 4.500v5M9 14.500v5',
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg className={`icon icon-${name}`} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}

/** A cat's head with closed eyes. */
export function Logo() {
  return (
    <svg className="logo" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <path className="logo-head" d="M6 6l6 4h8l6-4v12a10 9 0 0 1-20 0z" />
      <path className="logo-eyes" d="M10.500 17.500q1.700 1.600 3.500 0M18 17.500q1.700 1.600 3.500 0" />
    </svg>
  );
}
