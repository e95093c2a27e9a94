/** The result of one check of the machine. */

export interface Check {
  readonly name: string;
  /** `warn`: Catnap runs, with restrictions. `fail`: it will not run. */
  readonly status: 'ok' | 'warn' | 'fail';
  readonly detail: string;
  /** What to do; always set unless the status is `ok`. */
  readonly advice?: string;
}

export const ok = (name: string, detail: string): Check => ({ name, status: 'ok', detail });
export const warn = (name: string, detail: string, advice: string): Check => ({ name, status: 'warn', detail, advice });
export const fail = (name: string, detail: string, advice: string): Check => ({ name, status: 'fail', detail, advice });
