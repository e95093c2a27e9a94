/** How a copy reports where it is. */

export type Phase = 'check' | 'structure' | 'rows' | 'indexes' | 'changes' | 'views' | 'rules' | 'finish';

export interface CopyProgress {
  readonly phase: Phase;
  /** What is being worked on, such as a table. */
  readonly name: string;
  readonly done: number;
  readonly of: number;
  /** Of the rows copied so far, in this run and before; `bytesOf` is how large the tables are in the source. */
  readonly bytes?: number;
  readonly bytesOf?: number;
}

export type Report = (progress: CopyProgress) => void;
