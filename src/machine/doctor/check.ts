/** What one look at the machine found. */

export interface Check {
  readonly name: string;
  /** `warn`: Catnap runs, with less. `fail`: it will not. */
  readonly status: 'ok' | 'warn' | 'fail';
  readonly detail: string;
  /** What to do; always given unless all is well. */
  readonly advice?: string;
}

export const ok = (name: string, detail: string): Check => ({ name, status: 'ok', detail });
export const warn = (name: string, detail: string, advice: string): Check => ({ name, status: 'warn', detail, advice });
export const fail = (name: string, detail: string, advice: string): Check => ({ name, status: 'fail', detail, advice });
