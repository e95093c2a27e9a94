/** One way out that is tried: what is sent, and what shows that it led nowhere. */

export interface Escape {
  readonly text: string;
  /** SQLSTATEs of a refusal; empty where the statement may succeed, because its outcome is harmless. */
  readonly states: readonly string[];
  /** Whether rows that came back hold nothing of anybody else's. */
  readonly isHarmless?: (rows: readonly Record<string, unknown>[]) => boolean;
}

/** `insufficient_privilege`, unless said otherwise. */
export const refused = (text: string, states: readonly string[] = ['42501']): Escape => ({ text, states });

export const harmless = (text: string, isHarmless: NonNullable<Escape['isHarmless']>): Escape => ({
  text,
  states: [],
  isHarmless,
});

/** Nothing is shown to those who may not see it. */
export const showsNothing = (rows: readonly Record<string, unknown>[]): boolean =>
  rows.every((row) => Object.values(row).every((value) => value === null || value === '' || value === hidden));

const hidden = '<insufficient privilege>';
