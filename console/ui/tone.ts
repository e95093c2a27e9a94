/** How good or bad something is, as a colour. */

export type Tone = 'plain' | 'accent' | 'good' | 'warn' | 'bad';
