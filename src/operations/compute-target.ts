/** The rows that an operation on a compute works with. */
import type { ComputeRef } from '../compute/interface/driver.ts';
import type { BranchRow } from '../db/branches.ts';
import type { EndpointRow } from '../db/endpoints.ts';
import type { ProjectRow } from '../db/projects.ts';
import type { SizeRange } from '../lib/model.ts';

export interface ComputeTarget {
  readonly project: ProjectRow;
  readonly branch: BranchRow;
  readonly endpoint: EndpointRow;
  /** The size that the plan leaves it; the row keeps the one that was asked for. */
  readonly size: SizeRange;
  /** Of a replica: the settings that its primary has, runs with, or will run with. */
  readonly primarySettings: Readonly<Record<string, string>>;
  readonly ref: ComputeRef;
}
